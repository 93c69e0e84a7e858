# kiln_embed_headers(var folder [more headers]): a generated source that holds every header under `folder` as text, by the name that device
# code includes it by.
function(kiln_embed_headers var folder)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE more)
  list(APPEND headers ${more})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_${folder}.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${PROJECT_SOURCE_DIR} -DFOLDER=${folder} "-DHEADERS=${headers}"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${headers} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
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

# kiln_embed_page_parts(var folder): a generated source that holds each file of `folder` as text, by name. See
# isa_checks/cli/report/html.h.
function(kiln_embed_page_parts var folder)
  file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_page_parts.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} "-DPARTS=${parts}" -P ${PROJECT_SOURCE_DIR}/cmake/embed_page_parts.cmake
    DEPENDS ${parts} ${PROJECT_SOURCE_DIR}/cmake/embed_page_parts.cmake
    COMMENT "Embedding ${folder}/" VERBATIM)
  set(${var} ${output} PARENT_SCOPE)
endfunction()
