# What `cmake --install` lays out, in the components runtime, development, python and documentation, and the package that find_package(kiln) finds: kiln::kiln, the programs, kiln_add_kernel_cache.
include(CMakePackageConfigHelpers)

install(
  TARGETS kiln_all
  EXPORT kiln_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
  FILE_SET kiln_headers DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
if(KILN_BUNDLE AND NOT KILN_ARCHIVE_fmt)
  install(FILES $<TARGET_FILE:fmt::fmt> RENAME $<TARGET_SONAME_FILE_NAME:fmt::fmt> DESTINATION ${CMAKE_INSTALL_LIBDIR}/kiln COMPONENT runtime)
  set_target_properties(kiln_all PROPERTIES INSTALL_RPATH "$ORIGIN/kiln")
endif()
# Programs and libraries find libkiln.so from where they lie, so that the tree may be moved.
file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
foreach(program kiln kiln-worker isa_lint)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  endif()
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
# Not beside build.ninja: find_package looks into the folders beside those of PATH, and build/bin is one under ./dev.
set(package_files ${PROJECT_BINARY_DIR}/package_files)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/kilnConfig.cmake.in ${package_files}/kilnConfig.cmake INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${package_files}/kilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(REMOVE ${PROJECT_BINARY_DIR}/kilnConfig.cmake ${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake) # where they were before
install(FILES ${package_files}/kilnConfig.cmake ${package_files}/kilnConfigVersion.cmake ${CMAKE_CURRENT_LIST_DIR}/KilnKernelCache.cmake
        DESTINATION ${package} COMPONENT development)
install(EXPORT kiln_targets NAMESPACE kiln:: FILE kilnTargets.cmake DESTINATION ${package} COMPONENT development)

# kiln.pc finds its own prefix from where it lies: the installed tree may be moved.
file(RELATIVE_PATH KILN_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" KILN_PC_PREFIX "${KILN_PC_PREFIX}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/kiln.pc.in ${package_files}/kiln.pc @ONLY)
install(FILES ${package_files}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

install(FILES ${PROJECT_SOURCE_DIR}/docs/kiln.1 ${PROJECT_SOURCE_DIR}/docs/isa_lint.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
        COMPONENT documentation)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/cmake/package/bundled_licenses.txt DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT runtime)
include(KilnPackages)
include(KilnKernelCache) # for a build that has Kiln as a subdirectory
