# kiln_add_kernel_cache(TARGET {MANIFEST FILE | PROGRAM PROGRAM_TARGET} ARCHS gfx942 gfx950 ... [OUTPUT FOLDER] [DESTINATION FOLDER])
#
# Compiles kernels ahead of time as a part of a build: those of a manifest for `kiln aot`, or those of a program of this build whose main
# is kiln::aot_main. OUTPUT (default: TARGET in the binary folder) is a cache that a Jit mounts as a read-only layer; the target's
# property KILN_KERNEL_CACHE holds its path. With DESTINATION it is installed there. Only what changed is compiled anew.
function(kiln_add_kernel_cache target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MANIFEST;PROGRAM;OUTPUT;DESTINATION" "ARCHS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_ARCHS OR (arg_MANIFEST AND arg_PROGRAM) OR NOT (arg_MANIFEST OR arg_PROGRAM))
    message(FATAL_ERROR "kiln_add_kernel_cache(${target} ...): give ARCHS and either MANIFEST or PROGRAM; not understood: \"${arg_UNPARSED_ARGUMENTS}\"")
  endif()
  if(NOT arg_OUTPUT)
    set(arg_OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${target})
  endif()
  if(TARGET kiln-worker) # Kiln is a part of this build
    set(kiln $<TARGET_FILE:kiln>)
    set(worker $<TARGET_FILE:kiln-worker>)
    set(programs kiln kiln-worker)
  else()
    set(kiln ${KILN_PROGRAM})
    set(worker ${KILN_WORKER_PROGRAM})
    set(programs ${KILN_PROGRAM} ${KILN_WORKER_PROGRAM})
  endif()
  if(arg_MANIFEST)
    get_filename_component(manifest ${arg_MANIFEST} ABSOLUTE)
    set(command ${kiln} aot ${manifest})
  else()
    set(manifest ${arg_PROGRAM})
    set(command $<TARGET_FILE:${arg_PROGRAM}>)
  endif()
  list(JOIN arg_ARCHS "," archs)
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/${target}.stamp)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -E env KILN_WORKER=${worker} ${command} --arch ${archs} -o ${arg_OUTPUT} --quiet --stamp ${stamp}
    DEPENDS ${manifest} ${programs}
    COMMENT "Compiling kernels into ${arg_OUTPUT}" VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${stamp})
  set_target_properties(${target} PROPERTIES KILN_KERNEL_CACHE ${arg_OUTPUT})
  if(arg_DESTINATION)
    install(DIRECTORY ${arg_OUTPUT}/ DESTINATION ${arg_DESTINATION})
  endif()
endfunction()
