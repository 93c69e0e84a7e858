# The public headers: what an installed Kiln offers. They are the headers named here and whatever those include; all else is internal.
set(KILN_PUBLIC_HEADERS
    runtime/include/kiln/kiln.h # the whole run time
    gen/reference/evaluate_bounds.h gen/reference/random_inputs.h # the reference results that tests of kernels compare with
    isa_checks/analysis/kernel_analysis.h isa_checks/verdict/lint.h # what isa_lint knows
    isa_checks/exec/run/execute.h runtime/launch/emulated/emulate.h # executing code objects on the CPU
    isa_checks/timing/predict.h) # predicting their time

# kiln_public_headers(): gives every library the file set kiln_headers with its part of them. A public header that includes one of LLVM
# stops the configuration: users of an installed Kiln have no LLVM.
function(kiln_public_headers)
  set(waiting ${KILN_PUBLIC_HEADERS})
  set(found)
  while(waiting)
    list(POP_FRONT waiting header)
    if(header IN_LIST found)
      continue()
    endif()
    list(APPEND found ${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include ")
    foreach(line IN LISTS lines)
      if(line MATCHES "<llvm")
        message(FATAL_ERROR "${header} is public and includes a header of LLVM (${line}): take the include to a .cpp")
      elseif(line MATCHES "\"([^\"]+)\"")
        set(included ${CMAKE_MATCH_1})
        if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${included}) # device headers name each other without their folder
          set(included templates/${included})
        endif()
        list(APPEND waiting ${included})
      endif()
    endforeach()
  endwhile()
  foreach(layer IN ITEMS gen isa runtime)
    set(folders_gen "^(gen|templates|machine)/")
    set(folders_isa "^isa_checks/")
    set(folders_runtime "^runtime/")
    set(headers ${found})
    list(FILTER headers INCLUDE REGEX "${folders_${layer}}")
    list(FILTER headers EXCLUDE REGEX "/include/") # <kiln/kiln.h> is kiln_all's, and lies one folder higher when installed
    list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/)
    if(TARGET kiln_${layer})
      target_sources(kiln_${layer} PUBLIC FILE_SET kiln_headers TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
    endif()
  endforeach()
endfunction()
