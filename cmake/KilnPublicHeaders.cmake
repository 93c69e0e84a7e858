# The public headers: what an installed Kiln offers. They are the headers named here and whatever those include; all else is internal.
# They lie below one folder of their own: <kiln/kiln.h>, <kiln/gen/spec/dim.h>. Nothing but kiln/ reaches a user's include path.
set(KILN_PUBLIC_HEADERS
    runtime/include/kiln/kiln.h # the whole run time
    runtime/include/kiln/kiln_c.h # the C ABI
    gen/reference/evaluate_bounds.h gen/reference/random_inputs.h # the reference results that tests of kernels compare with
    isa_checks/analysis/kernel_analysis.h isa_checks/verdict/lint.h # what isa_lint knows
    isa_checks/exec/run/execute.h runtime/launch/emulated/emulate.h # executing code objects on the CPU
    isa_checks/timing/predict.h) # predicting their time
if(NOT KILN_RUNTIME)
  list(FILTER KILN_PUBLIC_HEADERS EXCLUDE REGEX "^runtime/")
  list(APPEND KILN_PUBLIC_HEADERS gen/catalog/catalog.h gen/families/schedule.h gen/spec/attention.h gen/spec/math.h)
endif()
if(NOT KILN_ISA)
  list(FILTER KILN_PUBLIC_HEADERS EXCLUDE REGEX "^isa_checks/")
endif()

# kiln_public_headers(target): writes them below include/kiln of the build folder, with includes that name each other from there, and
# gives the target that include folder.
function(kiln_public_headers target)
  set(waiting ${KILN_PUBLIC_HEADERS})
  set(found)
  set(written)
  while(waiting)
    list(POP_FRONT waiting header)
    if(header IN_LIST found)
      continue()
    endif()
    list(APPEND found ${header})
    string(REPLACE "runtime/include/kiln/" "" to ${header})
    list(APPEND written ${PROJECT_BINARY_DIR}/include/kiln/${to})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include ")
    foreach(line IN LISTS lines)
      if(line MATCHES "\"([^\"]+)\"")
        set(included ${CMAKE_MATCH_1})
        if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${included}) # device headers name each other without their folder
          set(included templates/${included})
        endif()
        list(APPEND waiting ${included})
      elseif(line MATCHES "<(llvm|fmt|nlohmann|CLI|curl|openssl)")
        message(FATAL_ERROR "${header} is public and has ${line}: its users need not have that library; take the include to a .cpp")
      endif()
    endforeach()
  endwhile()
  set(script ${PROJECT_SOURCE_DIR}/cmake/public_headers.cmake)
  list(TRANSFORM found PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE sources)
  add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/include/stamp
    BYPRODUCTS ${written}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUTPUT=${PROJECT_BINARY_DIR}/include "-DHEADERS=${found}" -P ${script}
    DEPENDS ${sources} ${script}
    COMMENT "Writing the public headers" VERBATIM)
  add_custom_target(kiln_headers DEPENDS ${PROJECT_BINARY_DIR}/include/stamp)
  add_dependencies(${target} kiln_headers)
  target_sources(${target} PUBLIC FILE_SET kiln_headers TYPE HEADERS BASE_DIRS ${PROJECT_BINARY_DIR}/include FILES ${written})
endfunction()
