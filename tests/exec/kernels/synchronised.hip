// Correct kernels of many kinds for the sanitisers to stay silent on: LDS with barriers, flags that are polled, rings, locks, inline
// assembly, direct-to-LDS loads, waits between workgroups. All take (in, out, n) and run with 256 threads.
// NO_CONSUMER_TEST and NO_PRODUCER_TEST leave out a queue's waiting, NO_SIGNAL what is waited for.
#ifdef NO_CONSUMER_TEST
#define CONSUMER_WAITS_WHILE(condition)
#else
#define CONSUMER_WAITS_WHILE(condition) \
  while (condition) __builtin_amdgcn_s_sleep(1)
#endif
#ifdef NO_PRODUCER_TEST
#define PRODUCER_WAITS_WHILE(condition)
#else
#define PRODUCER_WAITS_WHILE(condition) \
  while (condition) __builtin_amdgcn_s_sleep(1)
#endif
#ifdef NO_SIGNAL
#define SIGNAL 0
#else
#define SIGNAL 1
#endif
typedef unsigned u32;
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(256, 256))) void
#define SHARED __attribute__((shared))
#define DEVICE __attribute__((device)) static inline __attribute__((always_inline))

DEVICE u32 thread() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE u32 group() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE u32 wave() { return (u32)__builtin_amdgcn_readfirstlane((int)(thread() / 64)); }
DEVICE u32 lane() { return thread() % 64; }
DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
DEVICE u32 lds_address(u32* p) { return (u32)(unsigned long)(__attribute__((address_space(3))) u32*)p; }
DEVICE u32 load_flag(const u32* p) { return __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_WORKGROUP); }
DEVICE void store_flag(u32* p, u32 v) { __hip_atomic_store(p, v, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP); }

SHARED u32 data[2048];
SHARED u32 flags[64];
SHARED f16x4 left[2][64], right[2][64];

KERNEL reverse(const u32* in, u32* out, u32 n) {
  data[thread()] = in[group() * 256 + thread()];
  barrier();
  out[group() * 256 + thread()] = data[255 - thread()];
}

KERNEL tree_sum(const u32* in, u32* out, u32 n) {
  data[thread()] = in[group() * 256 + thread()];
  for (u32 half = 128; half > 0; half /= 2) {
    barrier();
    if (thread() < half) data[thread()] += data[thread() + half];
  }
  if (thread() == 0) out[group()] = data[0];
}

KERNEL scan(const u32* in, u32* out, u32 n) { // two halves of LDS in turn
  u32 from = 0;
  data[thread()] = in[group() * 256 + thread()];
  for (u32 step = 1; step < 256; step *= 2) {
    barrier();
    u32 v = data[from + thread()];
    if (thread() >= step) v += data[from + thread() - step];
    from ^= 1024;
    data[from + thread()] = v;
  }
  out[group() * 256 + thread()] = data[from + thread()];
}

KERNEL bytes_transposed(const u32* in, u32* out, u32 n) { // neighbours write bytes of one dword
  unsigned char* const bytes = (unsigned char*)data;
  const u32 v = in[group() * 256 + thread()];
  for (u32 b = 0; b < 4; ++b) bytes[b * 256 + thread()] = (unsigned char)(v >> (8 * b));
  barrier();
  out[group() * 256 + thread()] = data[thread()];
}

KERNEL histogram16(const u32* in, u32* out, u32 n) {
  if (thread() < 16) data[thread()] = 0;
  barrier();
  __hip_atomic_fetch_add(&data[in[group() * 256 + thread()] % 16], 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  barrier();
  if (thread() < 16) out[group() * 16 + thread()] = data[thread()];
}

KERNEL last_arrival(const u32* in, u32* out, u32 n) { // the last wave adds what the others left
  if (thread() == 0) flags[0] = 0;
  barrier();
  data[thread()] = in[group() * 256 + thread()];
  u32 arrived = 0;
  if (lane() == 0) arrived = __hip_atomic_fetch_add(&flags[0], 1U, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_WORKGROUP);
  if (__builtin_amdgcn_readfirstlane((int)arrived) == 3)
    for (u32 i = 0; i < 4; ++i) out[group() * 256 + i * 64 + lane()] = data[i * 64 + lane()];
}

KERNEL flag_queue(const u32* in, u32* out, u32 n) { // wave 0 produces, wave 1 consumes, through a ring of 4 slots
  if (thread() < 64) flags[thread()] = 0;
  barrier();
  if (wave() == 0) {
    for (u32 i = 0; i < 16; ++i) {
      const u32 slot = i % 4;
      PRODUCER_WAITS_WHILE(load_flag(&flags[slot]) != 0);
      data[slot * 64 + lane()] = in[i * 64 + lane()];
      store_flag(&flags[slot], SIGNAL);
    }
  } else if (wave() == 1) {
    for (u32 i = 0; i < 16; ++i) {
      const u32 slot = i % 4;
      CONSUMER_WAITS_WHILE(load_flag(&flags[slot]) != 1);
      out[group() * 1024 + i * 64 + lane()] = data[slot * 64 + lane()];
      store_flag(&flags[slot], 0);
    }
  }
}

KERNEL counting_queue(const u32* in, u32* out, u32 n) { // three consumers wait for a count, and count what they have read
  if (thread() < 64) flags[thread()] = 0;
  barrier();
  if (wave() == 0) {
    for (u32 i = 0; i < 8; ++i) {
      for (u32 w = 1; w < 4; ++w)
        if (i >= 2)
          while (load_flag(&flags[w]) < i - 1) {}
      data[i % 2 * 64 + lane()] = in[i * 64 + lane()];
      store_flag(&flags[0], i + 1);
    }
  } else {
    u32 sum = 0;
    for (u32 i = 0; i < 8; ++i) {
      while (load_flag(&flags[0]) <= i) {}
      sum += data[i % 2 * 64 + lane()];
      if (lane() == 0) __hip_atomic_fetch_add(&flags[wave()], 1U, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP);
      __builtin_amdgcn_wave_barrier();
    }
    out[group() * 192 + thread() - 64] = sum;
  }
}

KERNEL one_flag_per_lane(const u32* in, u32* out, u32 n) { // each lane of the last wave waits for a wave of its own
  if (thread() < 64) flags[thread()] = 0;
  barrier();
  if (wave() < 3) {
    data[thread()] = in[group() * 256 + thread()];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    if (lane() == 0) store_flag(&flags[wave()], 1);
  } else {
    bool ready = false;
    while (!ready) ready = lane() >= 3 || load_flag(&flags[lane()]) == 1;
    for (u32 i = 0; i < 3; ++i) out[group() * 192 + i * 64 + lane()] = data[i * 64 + lane()];
  }
}

KERNEL locked_sum(const u32* in, u32* out, u32 n) { // a spin lock around plain reads and writes
  if (thread() == 0) flags[0] = 0, data[0] = 0;
  barrier();
  if (lane() == 0) {
    u32 expected = 0;
    while (!__hip_atomic_compare_exchange_strong(&flags[0], &expected, 1U, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP))
      expected = 0;
    data[0] += in[group() * 256 + thread()];
    store_flag(&flags[0], 0);
  }
  barrier();
  if (thread() == 0) out[group()] = data[0];
}

KERNEL tickets(const u32* in, u32* out, u32 n) { // waves take turns
  if (thread() == 0) flags[0] = flags[1] = 0, data[0] = 0;
  barrier();
  if (lane() == 0) {
    const u32 mine = __hip_atomic_fetch_add(&flags[0], 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    while (load_flag(&flags[1]) != mine) {}
    data[0] = data[0] * 3 + 1;
    store_flag(&flags[1], mine + 1);
  }
  barrier();
  if (thread() == 0) out[group()] = data[0];
}

KERNEL direct_ring(const u32* in, u32* out, u32 n) { // a producer loads memory directly into LDS, two tiles ahead
  if (thread() < 64) flags[thread()] = 0;
  barrier();
  if (wave() == 0) {
    for (u32 i = 0; i < 18; ++i) {
      if (i < 16) {
        if (i >= 4) PRODUCER_WAITS_WHILE(load_flag(&flags[16 + i % 4]) != i / 4);
        __builtin_amdgcn_global_load_lds((__attribute__((address_space(1))) void*)(in + i * 64 + lane()),
                                         (__attribute__((address_space(3))) void*)(data + i % 4 * 64), 4, 0, 0);
      }
      if (i >= 2) {
        if (i < 16) asm volatile("s_waitcnt vmcnt(2) // before the flag" ::: "memory");
        else asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
        if (lane() == 0) __hip_atomic_store(&flags[(i - 2) % 4], (i - 2) / 4 + 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
      }
    }
  } else if (wave() == 1) {
    for (u32 i = 0; i < 16; ++i) {
      CONSUMER_WAITS_WHILE(load_flag(&flags[i % 4]) != i / 4 + 1);
      const u32 v = *(volatile u32*)&data[i % 4 * 64 + lane()];
      asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");
      out[group() * 1024 + i * 64 + lane()] = v;
      store_flag(&flags[16 + i % 4], i / 4 + 1);
    }
  }
}

KERNEL direct_then_barrier(const u32* in, u32* out, u32 n) {
  __builtin_amdgcn_global_load_lds((__attribute__((address_space(1))) void*)(in + group() * 256 + thread()),
                                   (__attribute__((address_space(3))) void*)(data + wave() * 64), 4, 0, 0);
  asm volatile("s_waitcnt vmcnt(0)\n s_barrier" ::: "memory");
  out[group() * 256 + thread()] = *(volatile u32*)&data[255 - thread()];
}

KERNEL direct_own(const u32* in, u32* out, u32 n) { // each wave reads what it loaded itself
  __builtin_amdgcn_global_load_lds((__attribute__((address_space(1))) void*)(in + group() * 256 + thread()),
                                   (__attribute__((address_space(3))) void*)(data + wave() * 64), 4, 0, 0);
  u32 v;
  asm volatile("s_waitcnt vmcnt(0)\n ds_read_b32 %0, %1\n s_waitcnt lgkmcnt(0)" : "=&v"(v) : "v"((thread() ^ 1) * 4) : "memory");
  out[group() * 256 + thread()] = v;
}

KERNEL inline_assembly(const u32* in, u32* out, u32 n) { // cross-lane, carry and LDS instructions by hand
  const u32 v = in[group() * 256 + thread()] * 3;
  u32 next, sum, back;
  asm("s_nop 1\n v_mov_b32_dpp %0, %1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf" : "=&v"(next) : "v"(v));
  asm("v_add_co_u32 %0, vcc, %1, %2\n s_nop 1\n v_addc_co_u32 %0, vcc, %0, 0, vcc" : "=&v"(sum) : "v"(v), "v"(next) : "vcc");
  asm volatile("ds_write_b32 %1, %2\n ds_read_b32 %0, %1\n s_waitcnt lgkmcnt(0)" : "=&v"(back) : "v"(lds_address(&data[thread()])), "v"(sum) : "memory");
  out[group() * 256 + thread()] = back;
}

KERNEL lanes_exchanged(const u32* in, u32* out, u32 n) {
  u32 v = in[group() * 256 + thread()];
  for (u32 step = 1; step < 64; step *= 2) v += (u32)__builtin_amdgcn_ds_bpermute((int)((lane() ^ step) * 4), (int)v);
  v += (u32)__builtin_amdgcn_readlane((int)v, (int)(group() % 64)) + (u32)__builtin_amdgcn_update_dpp(0, (int)v, 0x111, 0xf, 0xf, false);
  out[group() * 256 + thread()] = v;
}

KERNEL matrix_pipeline(const u32* in, u32* out, u32 n) { // double-buffered tiles, matrix instructions between barriers
  const f16x4* const from = (const f16x4*)in;
  f32x4 sum = {0, 0, 0, 0};
  if (wave() == 0) left[0][lane()] = from[lane()];
  if (wave() == 1) right[0][lane()] = from[64 + lane()];
  for (u32 k = 0; k < 6; ++k) {
    barrier();
    const f16x4 a = left[k % 2][lane()], b = right[k % 2][lane()];
    if (k < 5 && wave() == 0) left[(k + 1) % 2][lane()] = from[(2 * k + 2) * 64 + lane()];
    if (k < 5 && wave() == 1) right[(k + 1) % 2][lane()] = from[(2 * k + 3) * 64 + lane()];
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, sum, 0, 0, 0);
  }
  for (u32 i = 0; i < 4; ++i) out[group() * 1024 + thread() * 4 + i] = __builtin_bit_cast(u32, sum[i] * 2 + 1);
}

KERNEL matrix_chain(const u32* in, u32* out, u32 n) { // results of one matrix instruction as A and B of the next, and read at once
  const f16x4* const from = (const f16x4*)in;
  const f16x4 a = from[lane()], b = from[64 + lane()];
  f32x4 sum = __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, f32x4{1, 2, 3, 4}, 0, 0, 0);
  for (u32 i = 0; i < 3; ++i) {
    const f32x4 next = __builtin_amdgcn_mfma_f32_16x16x4f32(sum[0], sum[1], sum, 0, 0, 0);
    sum = next * 0.5f;
  }
  for (u32 i = 0; i < 4; ++i) out[group() * 1024 + thread() * 4 + i] = __builtin_bit_cast(u32, sum[i]);
}

KERNEL divided(const u32* in, u32* out, u32 n) { // IEEE division and square roots, which use VCC and transcendental instructions
  const float a = (float)(in[group() * 256 + thread()] & 0xffff), b = (float)(thread() + 1);
  out[group() * 256 + thread()] = __builtin_bit_cast(u32, a / b + __builtin_sqrtf(a) * __builtin_amdgcn_rcpf(b));
}

KERNEL chosen_pointer(const u32* in, u32* out, u32 n) { // flat addresses that stand for LDS in some lanes
  data[thread()] = in[group() * 256 + thread()] + 1;
  barrier();
  const u32* const p = thread() % 2 == 0 ? (const u32*)&data[thread()] : &in[group() * 256 + thread()];
  out[group() * 256 + thread()] = *(const volatile u32*)p;
}

KERNEL private_array(const u32* in, u32* out, u32 n) {
  volatile u32 own[16];
  for (u32 i = 0; i < 16; ++i) own[i] = in[i] + thread();
  out[group() * 256 + thread()] = own[thread() % 16] + *(const volatile u32*)(const u32*)(own + in[thread()] % 16);
}

KERNEL turn_by_turn(const u32* in, u32* out, u32 n) { // each workgroup waits for the one with the next number
  if (thread() == 0) {
    const u32 last = n - 1;
    if (group() != last)
      while (__hip_atomic_load(&out[group() + 1], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0) __builtin_amdgcn_s_sleep(1);
    const u32 before = group() == last ? 0 : __hip_atomic_load(&out[group() + 1], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    __hip_atomic_store(&out[group()], (before + 1) * SIGNAL, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  }
}

KERNEL grid_barrier(const u32* in, u32* out, u32 n) { // all workgroups arrive before any goes on
  if (thread() == 0) {
    __hip_atomic_fetch_add(&out[0], (u32)SIGNAL, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
    while (__hip_atomic_load(&out[0], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < n) {}
  }
  barrier();
  if (thread() == 0) out[1 + group()] = __hip_atomic_load(&out[0], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

KERNEL split_sum(const u32* in, u32* out, u32 n) { // partial sums, and the last workgroup adds them
  u32 v = in[group() * 256 + thread()];
  data[thread()] = v;
  barrier();
  if (thread() == 0) {
    for (u32 i = 1; i < 256; ++i) v += data[i];
    __hip_atomic_store(&out[8 + group()], v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    if (__hip_atomic_fetch_add(&out[0], 1U, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT) == n - 1) {
      u32 all = 0;
      for (u32 i = 0; i < n; ++i) all += __hip_atomic_load(&out[8 + i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
      out[1] = all;
    }
  }
}
