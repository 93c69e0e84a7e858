# Packages: a tarball and a .deb by CPack, and a wheel, of what `cmake --install` lays out. `./dev package` makes all three in
# build/packages; docs/packaging.md says what is in them.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_VENDOR "the Kiln authors")
set(CPACK_PACKAGE_CONTACT "the Kiln authors <kiln@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "JIT kernel generator for AMD Instinct GPUs")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_MONOLITHIC_INSTALL ON) # one package with all the components
# An engine that has Kiln as a subdirectory packages what it likes.
set(CPACK_INSTALL_CMAKE_PROJECTS ${PROJECT_BINARY_DIR} kiln ALL /)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd) # a third of xz's time for a tenth more bytes
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# What is private to Kiln (lib/kiln) is found there, not in a package.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib ${PROJECT_BINARY_DIR}/lib/kiln)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libhiprtc6 | libhiprtc7 | hip-runtime-amd, python3-numpy")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
if(PROJECT_IS_TOP_LEVEL)
  include(CPack)
endif()

find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND AND TARGET kiln_c)
  set(wheel_command ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/package/wheel.py ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR}
                    ${PROJECT_SOURCE_DIR}/python ${PROJECT_BINARY_DIR}/packages)
  add_custom_target(kiln_wheel COMMAND ${wheel_command} COMMENT "Making the wheel" VERBATIM)
  add_dependencies(kiln_wheel kiln kiln-worker isa_lint kiln_c)
  if(TARGET kiln_tvm_ffi)
    add_dependencies(kiln_wheel kiln_tvm_ffi)
  endif()
endif()
