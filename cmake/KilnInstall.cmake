# What `cmake --install` lays out, and the package that find_package(kiln) finds: kiln::kiln, or a layer of it
# (kiln::gen needs neither LLVM nor HIP).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(KilnPublicHeaders)

set(layers kiln_gen)
foreach(layer kiln_isa kiln_runtime)
  if(TARGET ${layer})
    list(APPEND layers ${layer})
  endif()
endforeach()

add_library(kiln_all INTERFACE)
target_link_libraries(kiln_all INTERFACE ${layers})
target_include_directories(kiln_all INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/runtime/include> # <kiln/kiln.h>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
add_library(kiln::kiln ALIAS kiln_all) # the name is the same in a build that has Kiln as a subdirectory
set_target_properties(kiln_all PROPERTIES EXPORT_NAME kiln)
foreach(layer ${layers})
  string(REPLACE kiln_ "" name ${layer})
  add_library(kiln::${name} ALIAS ${layer})
  set_target_properties(${layer} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${layer} PUBLIC cxx_std_20)
  target_include_directories(${layer} PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kiln>)
endforeach()

kiln_public_headers()
install(
  TARGETS kiln_all ${layers}
  EXPORT kiln_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET kiln_headers DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kiln)
foreach(program kiln kiln-worker isa_lint)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
install(FILES runtime/include/kiln/kiln.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kiln)

# In a folder of their own: find_package looks beside every `bin` in PATH, and what lies here is not to be found before it is installed.
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/kilnConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/package/kilnConfig.cmake INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/package/kilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/package/kilnConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/package/kilnConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/KilnKernelCache.cmake ${CMAKE_CURRENT_LIST_DIR}/KilnZstd.cmake
        DESTINATION ${package})
install(EXPORT kiln_targets NAMESPACE kiln:: FILE kilnTargets.cmake DESTINATION ${package})

install(FILES ${CMAKE_CURRENT_LIST_DIR}/../docs/kiln.1 ${CMAKE_CURRENT_LIST_DIR}/../docs/isa_lint.1
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
include(KilnKernelCache) # for a build that has Kiln as a subdirectory
include(KilnPkgConfig)
