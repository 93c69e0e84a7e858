# kiln_warnings(target): the warnings that every target of Kiln is clean of.
function(kiln_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion)
  if(KILN_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# kiln_compile_quickly(target): for code that runs for milliseconds (option parsing, reports, tests): compiled with -O0, which takes
# half of -O2's time. What runs long is in the libraries.
function(kiln_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
endfunction()
