/* The C ABI between Pavo and a backend plugin. Draft 0.x: it may change until 1.0 freezes it.
 *
 * A plugin is a shared object with one exported function, pavo_plugin_query, and an ELF note
 * (PAVO_PLUGIN_NOTE) that describes it before any of its code runs. docs/plugin-interface.md tells
 * what each part is for and what breaks without it.
 *
 * Rules that hold everywhere
 *  - Growing structs begin with struct_size, set by whoever writes the struct; a reader touches
 * only the smaller of its own and the given size. A reader that is given a larger struct than it
 * knows returns PAVO_ERROR_UNSUPPORTED_FIELD if any unknown byte is not zero. Reserved fields are
 * zero. Structs marked "fixed" have no size and never change within a major version.
 *  - Arrays of growing structs are arrays of pointers, so no one needs the other side's stride.
 *  - Functions return PAVO_OK or a PAVO_ERROR_* code and then fill *error (never NULL). On an error
 *    the outputs are untouched. Nothing throws, aborts, exits, prints or installs handlers;
 * messages go through the host's log function.
 *  - The owner frees: what the plugin creates it destroys through its own functions. Pointers that
 *    the host passes are valid during the call only, unless said otherwise.
 *  - Strings are UTF-8, not zero-terminated.
 *  - Thread rules: [setup] one thread at a time per plugin instance; [any] any thread at any time,
 *    also concurrently; [device] one thread at a time per device.
 */
#ifndef PAVO_PLUGIN_H_
#define PAVO_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#include "pavo/quant.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PAVO_ABI_MAJOR 0u
#define PAVO_ABI_MINOR 1u

/* ---- Status ---------------------------------------------------------------------------------- */
#define PAVO_OK 0
#define PAVO_ERROR_INVALID_ARGUMENT 1 /* the caller's fault: the same call fails again */
#define PAVO_ERROR_UNSUPPORTED 2      /* never after ACCEPT or ACCEPT_SLOW */
#define PAVO_ERROR_UNSUPPORTED_FIELD \
  3                          /* a struct has non-zero bytes that this side does not know */
#define PAVO_ERROR_VERSION 4 /* no common ABI version; the message prints both ranges */
#define PAVO_ERROR_OUT_OF_MEMORY 5
#define PAVO_ERROR_NODE_FAILED 6 /* the work failed, the device is usable */
#define PAVO_ERROR_DEVICE_LOST 7 /* the device's context is gone, with all its memory */
#define PAVO_ERROR_NO_DEVICE 8   /* that device id is not there (any more) */
#define PAVO_ERROR_TIMEOUT 9
#define PAVO_ERROR_CANCELLED 10
#define PAVO_ERROR_INTERNAL 11 /* a fault of the plugin */

#define PAVO_DEVICE_STATE_OK 0
#define PAVO_DEVICE_STATE_OOM 1         /* retry with less memory */
#define PAVO_DEVICE_STATE_NODE_FAILED 2 /* safe to run the node elsewhere */
#define PAVO_DEVICE_STATE_LOST 3

#define PAVO_DOMAIN_PLUGIN 0 /* native_code has no meaning */
#define PAVO_DOMAIN_ERRNO 1
#define PAVO_DOMAIN_CUDA_RUNTIME 2
#define PAVO_DOMAIN_CUDA_DRIVER 3
#define PAVO_DOMAIN_CUBLAS 4

/* Written by the callee into the caller's memory: works under out-of-memory and through a pipe. */
typedef struct pavo_error {
  uint32_t struct_size;
  int32_t code; /* PAVO_ERROR_* */
  int32_t domain;
  int32_t native_code;
  int32_t device_state;
  uint32_t message_size; /* bytes used in message, at most its size; cut at the end if longer */
  char message[488];     /* "expected X, got Y; try Z" */
} pavo_error;

/* Fixed. */
typedef struct pavo_string {
  const char* data;
  uint64_t size;
} pavo_string;

/* ---- Typed key-value lists: caps and options ------------------------------------------------- */
#define PAVO_VALUE_INT 0
#define PAVO_VALUE_FLOAT 1
#define PAVO_VALUE_STRING 2

typedef struct pavo_value {
  uint32_t struct_size;
  int32_t type; /* PAVO_VALUE_*: which of the three below holds the value */
  pavo_string key;
  int64_t int_value; /* also booleans: 0 or 1 */
  double float_value;
  pavo_string string_value;
} pavo_value;

typedef struct pavo_values {
  uint32_t struct_size;
  uint32_t count;
  const pavo_value* const* items;
} pavo_values;

/* Keys of caps that the host itself reads. Plugins add their own. A profile file of a card that is
 * not there holds the same keys. */
#define PAVO_CAP_ARCH "arch"                                     /* string: "cpu", "sm_61" */
#define PAVO_CAP_NAME "name"                                     /* string: "Tesla P40" */
#define PAVO_CAP_MEMORY_BYTES "memory_bytes"                     /* int */
#define PAVO_CAP_BANDWIDTH "bandwidth_bytes_per_s"               /* float, copy bandwidth */
#define PAVO_CAP_F32_FLOPS "f32_flops"                           /* float */
#define PAVO_CAP_COMPUTE_CAPABILITY "compute_capability"         /* int: 61 */
#define PAVO_CAP_SM_COUNT "sm_count"                             /* int */
#define PAVO_CAP_SHARED_BYTES_PER_BLOCK "shared_bytes_per_block" /* int, opt-in limit */

/* One option that plugin_create accepts. */
typedef struct pavo_option_info {
  uint32_t struct_size;
  int32_t type; /* PAVO_VALUE_* */
  pavo_string key;
  pavo_string text;          /* one line for people, with the unit and the allowed values */
  pavo_string default_value; /* as text */
} pavo_option_info;

/* ---- Tensors, nodes, graphs ------------------------------------------------------------------ */
#define PAVO_NO_TENSOR 0xffffffffu
#define PAVO_MAX_RANK 4

#define PAVO_ROLE_ACTIVATION 0 /* f32, planned by the host, new every step */
#define PAVO_ROLE_WEIGHT 1     /* bound to what pack() made */
#define PAVO_ROLE_KV_POOL 2    /* K/V pages, layout of quant.h, lives across steps */
#define PAVO_ROLE_STEP 3       /* i32, filled by the host before each submit */
#define PAVO_ROLE_STATE 4      /* f32, lives across steps (convolution and delta-rule states) */

/* How nodes use a weight; decides its packed layout, so it is part of the tensor. */
#define PAVO_USE_MATMUL 1u /* operand w of matmul */
#define PAVO_USE_GATHER 2u /* table of embed: rows are read by index */
#define PAVO_USE_DENSE 4u  /* read element by element: norm weights, biases, factors, sinks */

typedef struct pavo_tensor {
  uint32_t struct_size;
  int32_t type; /* PAVO_TYPE_* */
  int32_t role;
  int32_t rank;
  uint32_t uses; /* PAVO_USE_* of a weight, else 0 */
  uint32_t reserved;
  int64_t shape[PAVO_MAX_RANK];  /* outermost first; a dimension may be 0 */
  int64_t stride[PAVO_MAX_RANK]; /* bytes, activations and step tensors only, else 0 */
  pavo_string name;
} pavo_tensor;

/* pavo_op_<name> and pavo_<name>_params for every op of ops.inc. */
#define PAVO_FIELD(type, name) type name;
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) \
  enum { pavo_op_##name = id };                                     \
  typedef struct pavo_##name##_params {                             \
    uint32_t struct_size;                                           \
    fields                                                          \
  } pavo_##name##_params;
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD

#define PAVO_PRECISION_DEFAULT 0 /* int8 activations allowed where the weights are quantised */
#define PAVO_PRECISION_EXACT 1   /* f32 activations; f32 or wider products */
#define PAVO_NORM_RMS 0
#define PAVO_NORM_LAYER 1
#define PAVO_NORM_L2 2
#define PAVO_ROPE_NORMAL 0
#define PAVO_ROPE_NEOX 1
#define PAVO_ROPE_SECTIONS 2
#define PAVO_GLU_SILU 0
#define PAVO_GLU_GELU_TANH 1
#define PAVO_GLU_GELU_ERF 2
#define PAVO_GLU_CLAMPED 3
#define PAVO_BINARY_ADD 0
#define PAVO_BINARY_SUB 1
#define PAVO_BINARY_MUL 2

typedef struct pavo_node {
  uint32_t struct_size;
  int32_t op;           /* pavo_op_<name> */
  uint64_t id;          /* unique in the host's graph, for messages */
  uint32_t input_count; /* within the op's arity; absent optional ones are PAVO_NO_TENSOR */
  uint32_t output_count;
  const uint32_t* inputs; /* indices into the graph's tensors */
  const uint32_t* outputs;
  const void* params; /* pavo_<op>_params, which begins with its struct_size */
  pavo_string name;   /* "blk.0.attn_q" */
} pavo_node;

/* Sizes for which a plan is made: what changes from step to step stays within them. */
typedef struct pavo_bucket {
  uint32_t struct_size;
  int32_t tokens;    /* T of every activation; the last rows of a step may be padding */
  int32_t sequences; /* S */
  int32_t reserved;
  int64_t kv_rows; /* upper bound of every lengths[s] */
} pavo_bucket;

/* Nodes in execution order; every tensor index is below tensor_count. */
typedef struct pavo_graph {
  uint32_t struct_size;
  uint32_t tensor_count;
  const pavo_tensor* const* tensors;
  uint32_t node_count;
  uint32_t reserved;
  const pavo_node* const* nodes;
  const pavo_bucket* bucket;
} pavo_graph;

/* ---- Verdicts -------------------------------------------------------------------------------- */
#define PAVO_REFUSE 0
#define PAVO_ACCEPT_SLOW 1 /* only the kernel that works for every shape */
#define PAVO_ACCEPT 2      /* a kernel made for this */

/* Stable codes; a refusal has one other than NONE. */
#define PAVO_REASON_NONE 0
#define PAVO_REASON_OP 1             /* the op is not in the plugin */
#define PAVO_REASON_PARAM 2          /* a parameter's value */
#define PAVO_REASON_TYPE 3           /* an operand's element type */
#define PAVO_REASON_SHAPE_RANGE 4    /* a dimension is too small or too large */
#define PAVO_REASON_SHAPE_MULTIPLE 5 /* a dimension is not a multiple of `expected` */
#define PAVO_REASON_SHAPE_MISMATCH 6 /* dimensions that must agree do not */
#define PAVO_REASON_STRIDE 7         /* a layout that no kernel takes */
#define PAVO_REASON_ALIGNMENT 8
#define PAVO_REASON_OPERAND 9         /* an operand is missing or not taken */
#define PAVO_REASON_DEVICE_FEATURE 10 /* the device lacks something */
#define PAVO_REASON_NOT_BUILT 11
#define PAVO_REASON_WORKSPACE 12 /* needs more memory than allowed */
#define PAVO_REASON_POLICY 13    /* an option or a user's rule forbids it */
#define PAVO_REASON_ROLE 14      /* an operand's role */

#define PAVO_EST_NONE 0
#define PAVO_EST_MODEL 1    /* from caps, bytes and flops */
#define PAVO_EST_TABLE 2    /* from measurements shipped with the plugin */
#define PAVO_EST_MEASURED 3 /* on this device */

typedef struct pavo_verdict {
  uint32_t struct_size;
  int32_t decision;
  int32_t reason;
  int32_t operand;   /* index of the operand at fault, inputs first, then outputs; -1: none */
  int32_t attribute; /* dimension index, or byte offset in the params struct; -1: none */
  int32_t est_source;
  int64_t expected; /* of the operand's type, dimension, parameter ... ; 0 if it says nothing */
  int64_t actual;
  int64_t est_ns; /* of one run at the bucket's sizes */
  int64_t workspace_bytes;
  int64_t kv_rows_min; /* the verdict holds for lengths in this range */
  int64_t kv_rows_max;
  int64_t fusion_group; /* nodes with one positive number run as one kernel; 0: alone */
  char variant[64];     /* zero-terminated name of the kernel */
  char text[192];       /* zero-terminated: "expected ..., got ..." */
} pavo_verdict;

/* ---- Weights --------------------------------------------------------------------------------- */
typedef struct pavo_pack_info {
  uint32_t struct_size;
  /* 1: the packed form is the file's form, so memory that buffer_import wraps can be bound as it
   * is; pack() still works. */
  int32_t in_place;
  int64_t size_bytes;
  int64_t alignment; /* of the offset in its buffer, a power of two, at most 4096 */
} pavo_pack_info;

/* ---- Devices, memory, execution -------------------------------------------------------------- */
typedef struct pavo_plugin pavo_plugin;     /* an instance: plugin + options */
typedef struct pavo_device pavo_device;     /* an opened device */
typedef struct pavo_buffer pavo_buffer;     /* memory of a device */
typedef struct pavo_timeline pavo_timeline; /* counter that queued work raises */
typedef struct pavo_plan pavo_plan;         /* a prepared segment */

typedef struct pavo_device_info {
  uint32_t struct_size;
  int32_t ordinal; /* for display only */
  pavo_string id;  /* stable and unique: "cpu", "GPU-<uuid>" */
  pavo_string name;
  const pavo_values* caps; /* the plugin's, valid until plugin_destroy */
} pavo_device_info;

typedef struct pavo_memory_info {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t total_bytes;
  int64_t free_bytes; /* as the device says now */
  int64_t used_bytes; /* by this plugin instance on this device */
} pavo_memory_info;

#define PAVO_MEMORY_DEVICE 0
#define PAVO_MEMORY_HOST 1 /* host-visible and fast to copy from and to the device (pinned) */

/* Fixed. A place in a buffer that a tensor of a segment is bound to. */
typedef struct pavo_binding {
  pavo_buffer* buffer;
  int64_t offset; /* bytes */
} pavo_binding;

/* Fixed. Work may start when, or signals that, the timeline has reached value. */
typedef struct pavo_fence {
  pavo_timeline* timeline; /* of the same device */
  uint64_t value;
} pavo_fence;

/* Fixed. One 2-D copy; each side is a buffer of this device, or host memory if the buffer is NULL.
 * Source and destination may not overlap. */
typedef struct pavo_copy_region {
  pavo_buffer* src;
  pavo_buffer* dst;
  const void* src_host; /* if src is NULL; must stay valid until the copy's signal */
  void* dst_host;       /* if dst is NULL */
  int64_t src_offset;   /* bytes, also added to a host pointer */
  int64_t dst_offset;
  int64_t row_bytes;
  int64_t rows;
  int64_t src_pitch; /* bytes from row to row */
  int64_t dst_pitch;
} pavo_copy_region;

typedef struct pavo_plan_info {
  uint32_t struct_size;
  int32_t launches;        /* kernels (or the like) a submit issues */
  int64_t workspace_bytes; /* to be bound at submit; 0: none */
} pavo_plan_info;

typedef struct pavo_submit {
  uint32_t struct_size;
  uint32_t binding_count; /* = tensor_count of the plan's graph, same order */
  /* A tensor that no node of the segment touches may be bound to {NULL, 0}. */
  const pavo_binding* bindings;
  pavo_binding workspace;
  const pavo_fence* waits;
  const pavo_fence* signals;
  uint32_t wait_count;
  uint32_t signal_count;
} pavo_submit;

/* ---- What the host gives --------------------------------------------------------------------- */
#define PAVO_LOG_DEBUG 0
#define PAVO_LOG_INFO 1
#define PAVO_LOG_WARN 2
#define PAVO_LOG_ERROR 3

/* Lives until the process ends. All functions: [any]. */
typedef struct pavo_host_api {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor; /* the host's own, at least the negotiated one */
  uint32_t reserved;
  void* context; /* passed back as the first argument */
  /* Counted host memory, alignment a power of two; NULL when there is none left. */
  void* (*alloc)(void* context, uint64_t size, uint64_t alignment);
  void (*free)(void* context, void* memory, uint64_t size);
  void (*log)(void* context, int32_t level, const char* message, uint64_t size);
} pavo_host_api;

/* ---- What the plugin gives ------------------------------------------------------------------- */
/* Functions marked (optional) may be NULL. Later minors append. */
typedef struct pavo_plugin_api {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor; /* the negotiated minor: highest that both sides know */
  uint32_t reserved;
  pavo_string id; /* "cpu", "cuda-sm61"; the same as in the note */
  pavo_string version;

  /* [any] The options that plugin_create knows. *out points to static memory. */
  int32_t (*options)(const pavo_option_info* const** out, uint32_t* count, pavo_error* error);

  /* [setup] Makes an instance. Needs no device and no driver. Unknown keys, wrong types and values
   * out of range are PAVO_ERROR_INVALID_ARGUMENT with the key in the message. */
  int32_t (*plugin_create)(const pavo_values* options, pavo_plugin** out, pavo_error* error);
  /* [setup] All its devices must be closed. NULL is allowed. */
  void (*plugin_destroy)(pavo_plugin* plugin);

  /* [setup] Devices that this plugin could serve; 0 when there is no driver (no error). The list is
   * made once, at the first call. */
  int32_t (*device_count)(pavo_plugin* plugin, uint32_t* count, pavo_error* error);
  /* [any] Fills the caller's *info (struct_size set by the caller). */
  int32_t (*device_info)(
      pavo_plugin* plugin, uint32_t index, pavo_device_info* info, pavo_error* error);

  /* [any] The predicate. Pure: the same answer for the same arguments and options; no device, no
   * driver. caps may come from a profile. verdicts: graph->node_count pointers, struct_size set by
   * the caller; every verdict is written. ACCEPT and ACCEPT_SLOW promise that plan_create and
   * submit never answer PAVO_ERROR_UNSUPPORTED while lengths stay in the verdict's range. */
  int32_t (*query_nodes)(
      pavo_plugin* plugin,
      const pavo_values* caps,
      const pavo_graph* graph,
      pavo_verdict* const* verdicts,
      pavo_error* error);

  /* [any] Size and form of a packed weight; pure like query_nodes. */
  int32_t (*pack_info)(
      pavo_plugin* plugin,
      const pavo_values* caps,
      const pavo_tensor* tensor,
      pavo_pack_info* info,
      pavo_error* error);

  /* [setup] Opens a device by its stable id. */
  int32_t (*device_open)(
      pavo_plugin* plugin, const pavo_string* id, pavo_device** out, pavo_error* error);
  /* [device] Waits for its queues. Its buffers, plans and timelines must be destroyed before. */
  void (*device_close)(pavo_device* device);
  /* [any] */
  int32_t (*device_memory)(pavo_device* device, pavo_memory_info* info, pavo_error* error);
  /* [device] Runs one small piece of real work and checks its result. */
  int32_t (*device_self_test)(pavo_device* device, pavo_error* error);

  /* [any] size_bytes >= 0; contents are undefined. kind: PAVO_MEMORY_*. */
  int32_t (*buffer_create)(
      pavo_device* device, int64_t size_bytes, int32_t kind, pavo_buffer** out, pavo_error* error);
  /* [any] (optional) Wraps host memory, which must outlive the buffer; read only for the plugin. */
  int32_t (*buffer_import)(
      pavo_device* device,
      const void* memory,
      int64_t size_bytes,
      pavo_buffer** out,
      pavo_error* error);
  /* [any] No queued work may use it any more. NULL is allowed. */
  void (*buffer_destroy)(pavo_buffer* buffer);
  /* [any] Address at which the host may read and write while no queued work touches it; NULL for
   * memory that the host cannot see. */
  void* (*buffer_host)(pavo_buffer* buffer);

  /* [any] Packs rows row_begin.. of the file's tensor into `target`, done when it returns. src: the
   * rows as in the file, row_count * row bytes, any alignment. Rows may come in any order and from
   * several threads; a weight is complete when every row was packed once. Higher ranks: rows of the
   * flattened [shape[0]*..., last]. */
  int32_t (*pack)(
      pavo_device* device,
      const pavo_tensor* tensor,
      const pavo_binding* target,
      const void* src,
      int64_t row_begin,
      int64_t row_count,
      pavo_error* error);

  /* [any] A timeline starts at 0 and only rises. */
  int32_t (*timeline_create)(pavo_device* device, pavo_timeline** out, pavo_error* error);
  void (*timeline_destroy)(pavo_timeline* timeline);
  /* [any] Blocks until the value is reached, up to timeout_ns (negative: for ever). Work that
   * failed still raises its timeline; the wait then returns the failure, once. */
  int32_t (*timeline_wait)(
      pavo_timeline* timeline, uint64_t value, int64_t timeout_ns, pavo_error* error);

  /* [device] Queues copies, in any order among themselves. May finish before it returns. */
  int32_t (*copy)(
      pavo_device* device,
      const pavo_copy_region* regions,
      uint32_t region_count,
      const pavo_fence* waits,
      uint32_t wait_count,
      const pavo_fence* signals,
      uint32_t signal_count,
      pavo_error* error);

  /* [device] Prepares a segment whose nodes this plugin accepted. The graph may hold tensors that
   * no node of the segment uses. Activations that no later segment reads may stay unwritten. */
  int32_t (*plan_create)(
      pavo_device* device,
      const pavo_graph* graph,
      pavo_plan** out,
      pavo_plan_info* info,
      pavo_error* error);
  void (*plan_destroy)(pavo_plan* plan);
  /* [device] Queues one run. Runs of one device execute in the order of submission. May finish
   * before it returns. */
  int32_t (*submit)(pavo_plan* plan, const pavo_submit* submit, pavo_error* error);
  /* [device] (optional) Time of each node in the last finished run, ns; node_count values, 0 for a
   * node that ran inside another. */
  int32_t (*plan_timings)(
      pavo_plan* plan, int64_t* node_ns, uint32_t node_count, pavo_error* error);
} pavo_plugin_api;

/* The only exported symbol. The host names its ABI major and the minors that it can talk; the
 * plugin answers with the table of the highest common minor, or PAVO_ERROR_VERSION. host stays
 * valid for the life of the process. Starts no thread and touches no device. [setup] */
typedef int32_t (*pavo_plugin_query_fn)(
    uint32_t abi_major,
    uint32_t host_min_minor,
    uint32_t host_max_minor,
    const pavo_host_api* host,
    const pavo_plugin_api** out,
    pavo_error* error);

#define PAVO_PLUGIN_QUERY_NAME "pavo_plugin_query"
#if defined(__GNUC__)
#define PAVO_EXPORT __attribute__((visibility("default")))
#else
#define PAVO_EXPORT
#endif

PAVO_EXPORT int32_t pavo_plugin_query(
    uint32_t abi_major,
    uint32_t host_min_minor,
    uint32_t host_max_minor,
    const pavo_host_api* host,
    const pavo_plugin_api** out,
    pavo_error* error);

/* ---- The ELF note ----------------------------------------------------------------------------
 * Section .note.pavo, name "PAVO", type PAVO_NOTE_TYPE; the description is lines "key=value\n":
 *   id, version, vendor, license
 *   abi            major.min_minor-max_minor, e.g. 0.1-1
 *   kind           cpu | cuda | other
 *   sass           for kind=cuda: comma list of targets with machine code (sm_61)
 *   ptx            targets with PTX (compute_61)
 *   toolkit        e.g. 12.4
 *   driver_min     lowest driver version of the vendor's numbering, e.g. 12040 for CUDA 12.4
 *   needs          comma list of libraries opened at run time, may be empty
 * PAVO_PLUGIN_NOTE(text) defines it, at file scope, once a plugin. `text` is a string literal. */
#define PAVO_NOTE_TYPE 1u
#define PAVO_NOTE_SECTION ".note.pavo"
#define PAVO_PLUGIN_NOTE(text)                                                                \
  typedef struct pavo_note_layout {                                                           \
    uint32_t name_size;                                                                       \
    uint32_t description_size;                                                                \
    uint32_t type;                                                                            \
    char name[8];                                                                             \
    char description[(sizeof(text) + 3) / 4 * 4];                                             \
  } pavo_note_layout;                                                                         \
  __attribute__((section(PAVO_NOTE_SECTION), used, aligned(4))) static const pavo_note_layout \
      pavo_plugin_note = {5u, (uint32_t)(sizeof(text) - 1), PAVO_NOTE_TYPE, "PAVO", text}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PAVO_PLUGIN_H_ */
