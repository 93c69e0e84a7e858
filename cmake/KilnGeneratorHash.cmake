# kiln_generator_hash(var): a generated source with the hash of everything that decides which code comes out of Kiln: the
# generator, the device headers, what judges the code, and what drives the compiler.
function(kiln_generator_hash var)
  set(root ${PROJECT_SOURCE_DIR})
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${root}/gen/*.cpp ${root}/gen/*.h ${root}/gen/*.def ${root}/templates/*.h ${root}/machine/*.h ${root}/machine/*.def)
  file(GLOB_RECURSE more CONFIGURE_DEPENDS ${root}/isa_checks/*.cpp ${root}/isa_checks/*.h
       ${root}/isa_checks/*.def ${root}/docs/rules/*.md ${root}/runtime/build/* ${root}/runtime/compile/*)
  list(FILTER more EXCLUDE REGEX "/isa_checks/(cli|exec|input|timing)/|CMakeLists.txt") # what these do changes no entry and no verdict
  list(APPEND files ${more})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/generator_hash.cpp)
  set_property(GLOBAL PROPERTY KILN_GENERATOR_FILES ${output}.files)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${root} "-DFILES=${files}" -P ${root}/cmake/generator_hash.cmake
    DEPENDS ${files} ${root}/cmake/generator_hash.cmake
    COMMENT "Hashing the generator" VERBATIM)
  set(${var} ${output} PARENT_SCOPE)
endfunction()
