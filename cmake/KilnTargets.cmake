# kiln_warnings(target): the warnings that every target of Kiln is clean of.
function(kiln_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion)
  if(KILN_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang") # local names of files that are compiled together meet
    target_compile_options(${target} PRIVATE -Wno-shadow)
  endif()
  if(KILN_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# kiln_compile_quickly(target): for code that runs for milliseconds (option parsing, reports, tests): compiled with -O0, which takes
# half of -O2's time. What runs long is in the libraries. For programs only: an object of a library would bring its slow copies of
# std::string and the like into every program, in place of the optimised ones. The sanitisers' presets want it too: optimised and
# instrumented, g++ 16 takes members of std::regex for uninitialised.
function(kiln_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-O0>)
endfunction()

# kiln_unity(target [ALONE regex...]): compiles the sources of a folder together, at most `most` a translation unit, if KILN_UNITY is
# on. Headers and templates are then read and instantiated once for all of them, which halves a build. ALONE: files whose text heats the
# compiler rather than their headers, or whose local names are those of the files beside them. Generated sources are not joined.
# The preset clang switches KILN_UNITY off, so that every file keeps including what it uses.
function(kiln_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 unity "" "" ALONE)
  set(most 8)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    set(alone FALSE)
    foreach(pattern IN LISTS unity_ALONE)
      if(path MATCHES "${pattern}")
        set(alone TRUE)
      endif()
    endforeach()
    if(alone OR path MATCHES "^\\.\\.|^build")
      continue()
    endif()
    cmake_path(GET path PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    list(APPEND folders ${folder})
    list(APPEND sources_of_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH sources_of_${folder} count)
    math(EXPR parts "(${count} + ${most} - 1) / ${most}")
    set(i 0)
    foreach(source IN LISTS sources_of_${folder})
      math(EXPR part "${i} * ${parts} / ${count}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${part})
      math(EXPR i "${i} + 1")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${KILN_UNITY} UNITY_BUILD_MODE GROUP UNITY_BUILD_RELOCATABLE ON)
endfunction()
