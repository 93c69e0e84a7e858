# kiln_embed(var folder pattern header "TYPE FUNCTION" [more files]): a generated source that holds every file under `folder` that matches
# as text, by its name there: what FUNCTION, which `header` declares, gives a span of.
function(kiln_embed var folder pattern header declared)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/${pattern})
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE more)
  list(APPEND files ${more})
  string(MAKE_C_IDENTIFIER ${folder} name)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_${name}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${PROJECT_SOURCE_DIR} -DFOLDER=${folder} -DHEADER=${header} -DDECLARED=${declared}
            "-DFILES=${files}" -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding ${folder}/" VERBATIM)
  set(${var} ${output} PARENT_SCOPE)
endfunction()

# kiln_embed_pages(var folder): rule_pages.inc, the pages of `folder` as entries of isa_lint's table of rules, and rule_names.inc.
function(kiln_embed_pages var folder)
  file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.md)
  set(table ${CMAKE_CURRENT_BINARY_DIR}/rule_pages.inc)
  set(names ${CMAKE_CURRENT_BINARY_DIR}/rule_names.inc)
  add_custom_command(
    OUTPUT ${table} ${names}
    COMMAND ${CMAKE_COMMAND} -DTABLE=${table} -DNAMES=${names} "-DPAGES=${pages}" -P ${PROJECT_SOURCE_DIR}/cmake/embed_pages.cmake
    DEPENDS ${pages} ${PROJECT_SOURCE_DIR}/cmake/embed_pages.cmake
    COMMENT "Embedding ${folder}/" VERBATIM)
  set(${var} ${table} ${names} PARENT_SCOPE)
endfunction()
