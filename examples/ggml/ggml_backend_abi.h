// The interface between libggml and its backends at API version 3, declared as the facts of an ABI that they are.
// libggml-dev ships no header for backends. Order and types of the functions below were read out of libggml 0.27.0: which offset
// of a struct each public function of libggml-base.so calls or tests (docs/ggml.md has the list), and that the CPU backend's
// registration begins with a 3. Another version is another layout: registration.cpp refuses it. -DKILN_GGML_INCLUDE=DIR takes
// the real ggml-backend-impl.h and ggml-impl.h of a source tree in place of this file, of any version: Kiln sets members by name.
#pragma once
#include <ggml-backend.h>

#ifdef KILN_GGML_REAL_HEADERS
#include <ggml-backend-impl.h>
#include <ggml-impl.h>
#else
#define GGML_BACKEND_API_VERSION 3

struct ggml_backend_buffer_type_i {
  const char* (*get_name)(ggml_backend_buffer_type_t);
  ggml_backend_buffer_t (*alloc_buffer)(ggml_backend_buffer_type_t, size_t);
  ggml_backend_buffer_t (*alloc_buffer_n)(ggml_backend_buffer_type_t, ggml_tensor**, int); // may be null, as all that follow but alignment
  size_t (*get_alignment)(ggml_backend_buffer_type_t);
  size_t (*get_max_size)(ggml_backend_buffer_type_t);
  size_t (*get_alloc_size)(ggml_backend_buffer_type_t, const ggml_tensor*);
  size_t (*get_alloc_size_n)(ggml_backend_buffer_type_t, ggml_tensor**, int);
  bool (*is_host)(ggml_backend_buffer_type_t);
};

struct ggml_backend_buffer_type {
  ggml_backend_buffer_type_i iface;
  ggml_backend_dev_t device;
  void* context;
};

struct ggml_backend_buffer_i {
  void (*free_buffer)(ggml_backend_buffer_t);
  void* (*get_base)(ggml_backend_buffer_t);
  ggml_status (*init_tensor)(ggml_backend_buffer_t, ggml_tensor*);
  void (*memset_tensor)(ggml_backend_buffer_t, ggml_tensor*, uint8_t, size_t offset, size_t size);
  void (*set_tensor)(ggml_backend_buffer_t, ggml_tensor*, const void*, size_t offset, size_t size);
  void (*get_tensor)(ggml_backend_buffer_t, const ggml_tensor*, void*, size_t offset, size_t size);
  void (*set_tensor_2d)(ggml_backend_buffer_t, ggml_tensor*, const void*, size_t, size_t, size_t, size_t, size_t);
  void (*get_tensor_2d)(ggml_backend_buffer_t, const ggml_tensor*, void*, size_t, size_t, size_t, size_t, size_t);
  bool (*cpy_tensor)(ggml_backend_buffer_t, const ggml_tensor* from, ggml_tensor* to);
  void (*clear)(ggml_backend_buffer_t, uint8_t);
  void (*reset)(ggml_backend_buffer_t);
};

struct ggml_backend_buffer {
  ggml_backend_buffer_i iface;
  ggml_backend_buffer_type_t buft;
  void* context;
  size_t size;
  ggml_backend_buffer_usage usage;
};

extern "C" ggml_backend_buffer_t ggml_backend_buffer_init(ggml_backend_buffer_type_t, ggml_backend_buffer_i, void* context, size_t size);

struct ggml_backend_i {
  const char* (*get_name)(ggml_backend_t);
  void (*free)(ggml_backend_t);
  void (*set_tensor_async)(ggml_backend_t, ggml_tensor*, const void*, size_t offset, size_t size);
  void (*get_tensor_async)(ggml_backend_t, const ggml_tensor*, void*, size_t offset, size_t size);
  void (*set_tensor_2d_async)(ggml_backend_t, ggml_tensor*, const void*, size_t, size_t, size_t, size_t, size_t);
  void (*get_tensor_2d_async)(ggml_backend_t, const ggml_tensor*, void*, size_t, size_t, size_t, size_t, size_t);
  bool (*cpy_tensor_async)(ggml_backend_t, ggml_backend_t, const ggml_tensor*, ggml_tensor*);
  void (*synchronize)(ggml_backend_t);
  ggml_backend_graph_plan_t (*graph_plan_create)(ggml_backend_t, const ggml_cgraph*);
  void (*graph_plan_free)(ggml_backend_t, ggml_backend_graph_plan_t);
  void (*graph_plan_update)(ggml_backend_t, ggml_backend_graph_plan_t, const ggml_cgraph*);
  ggml_status (*graph_plan_compute)(ggml_backend_t, ggml_backend_graph_plan_t);
  ggml_status (*graph_compute)(ggml_backend_t, ggml_cgraph*);
  void (*event_record)(ggml_backend_t, ggml_backend_event_t);
  void (*event_wait)(ggml_backend_t, ggml_backend_event_t);
  void (*graph_optimize)(ggml_backend_t, ggml_cgraph*, const void* params); // Kiln's is null
};

struct ggml_backend_event {
  ggml_backend_dev_t device;
  void* context;
};

struct ggml_backend {
  ggml_guid_t guid;
  ggml_backend_i iface;
  ggml_backend_dev_t device;
  void* context;
};

struct ggml_backend_device_i {
  const char* (*get_name)(ggml_backend_dev_t);
  const char* (*get_description)(ggml_backend_dev_t);
  void (*get_memory)(ggml_backend_dev_t, size_t* free, size_t* total);
  enum ggml_backend_dev_type (*get_type)(ggml_backend_dev_t);
  void (*get_props)(ggml_backend_dev_t, ggml_backend_dev_props*);
  ggml_backend_t (*init_backend)(ggml_backend_dev_t, const char*);
  ggml_backend_buffer_type_t (*get_buffer_type)(ggml_backend_dev_t);
  ggml_backend_buffer_type_t (*get_host_buffer_type)(ggml_backend_dev_t);
  ggml_backend_buffer_t (*buffer_from_host_ptr)(ggml_backend_dev_t, void*, size_t, size_t);
  bool (*supports_op)(ggml_backend_dev_t, const ggml_tensor*);
  bool (*supports_buft)(ggml_backend_dev_t, ggml_backend_buffer_type_t);
  bool (*offload_op)(ggml_backend_dev_t, const ggml_tensor*);
  ggml_backend_event_t (*event_new)(ggml_backend_dev_t);
  void (*event_free)(ggml_backend_dev_t, ggml_backend_event_t);
  void (*event_synchronize)(ggml_backend_dev_t, ggml_backend_event_t);
};

struct ggml_backend_device {
  ggml_backend_device_i iface;
  ggml_backend_reg_t reg;
  void* context;
};

struct ggml_backend_reg_i {
  const char* (*get_name)(ggml_backend_reg_t);
  size_t (*get_device_count)(ggml_backend_reg_t);
  ggml_backend_dev_t (*get_device)(ggml_backend_reg_t, size_t);
  void* (*get_proc_address)(ggml_backend_reg_t, const char*);
};

struct ggml_backend_reg {
  int api_version;
  ggml_backend_reg_i iface;
  void* context;
};

// The head of ggml's graph. Its nodes are had through ggml.h too, which tells whether this is still the layout (graph_uses.cpp);
// how often a tensor is used in the whole graph, of which a backend sees a part, stands here only.
struct ggml_cgraph {
  int size, n_nodes, n_leafs;
  ggml_tensor **nodes, **grads, **grad_accs, **leafs;
  int32_t* use_counts; // by slot of the hash set
  struct {
    size_t size;
    uint32_t* used; // a bit a slot
    ggml_tensor** keys;
  } visited_hash_set;
};
#endif
