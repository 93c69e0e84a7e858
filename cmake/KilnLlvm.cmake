# Finds LLVM, and kiln_link_llvm(target): its MC layer for AMD GPUs, from the shared library where there is one. KilnBundle.cmake puts the
# static libraries into what is handed out.
find_package(LLVM REQUIRED CONFIG)
if(LLVM_VERSION_MAJOR LESS 20 OR LLVM_VERSION_MAJOR GREATER 22)
  message(FATAL_ERROR "Kiln needs LLVM 20 to 22, found ${LLVM_VERSION} in ${LLVM_DIR}; set LLVM_DIR to another one")
endif()
if(NOT "AMDGPU" IN_LIST LLVM_TARGETS_TO_BUILD)
  message(FATAL_ERROR "The LLVM ${LLVM_VERSION} in ${LLVM_DIR} was built without its AMDGPU target; set LLVM_DIR to another one")
endif()

set(KILN_LLVM_COMPONENTS amdgpuasmparser amdgpudisassembler amdgpudesc amdgpuinfo mc mcparser mcdisassembler debuginfodwarf object
                         binaryformat targetparser support)
if(TARGET LLVM)
  set(KILN_LLVM_LIBRARIES LLVM)
else() # ROCm's own LLVM has static libraries only
  llvm_map_components_to_libnames(KILN_LLVM_LIBRARIES ${KILN_LLVM_COMPONENTS})
endif()

function(kiln_link_llvm target)
  separate_arguments(definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  target_include_directories(${target} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${target} PRIVATE ${definitions})
  if(NOT LLVM_ENABLE_RTTI) # or classes derived from LLVM's would refer to type information that is not there
    target_compile_options(${target} PRIVATE -fno-rtti)
  endif()
  target_link_libraries(${target} PRIVATE ${KILN_LLVM_LIBRARIES})
endfunction()
