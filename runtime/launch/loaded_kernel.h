// LoadedKernel and BoundKernel: a kernel on a device, and that kernel with its arguments.
#pragma once
#include "runtime/launch/arguments/arguments.h"
#include "runtime/launch/backend.h"
#include "runtime/launch/workspace_pool.h"
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace kiln {

struct KernelOnDevice; // loaded code, the tensors of the spec, workspaces

// A launch whose arguments are all checked. A cheap value; copies share one immutable launch. It may go before its launches are
// over, and after their streams: no stream is asked once launch() has returned. Keep it while a graph that captured it is
// replayed. If the kernel has a workspace, its launches must follow one another (one stream, or ordered by events); bind again for a
// launch beside it.
class BoundKernel {
public:
  // Enqueues on `stream`, which must be of the kernel's device (null: its default stream). Does nothing else: no allocation, no
  // synchronisation, no lock, no other HIP call (unless HIP has several devices and `stream` is a default one: then the
  // current device is asked, and switched for the call if need be). So it may be captured into a graph. Launches of a kernel
  // without workspace may come from several threads at once. Throws EnvironmentError when HIP refuses, ExecutionError on an
  // emulated device. Nothing is launched when a size is 0.
  void launch(Stream stream = nullptr) const {
    if (launch_->packet.blocks == 0) return;
    if (launch_->workspace) launch_->workspace->use();
    launch_->code->launch(launch_->packet, stream);
  }

  std::uint32_t blocks() const { return launch_->packet.blocks; }   // workgroups, all in x
  std::uint32_t threads() const { return launch_->packet.threads; } // of each
  std::span<const std::byte> argument_block() const { return launch_->packet.block; }

private:
  friend class Binder;
  struct BoundLaunch {
    std::shared_ptr<const KernelOnDevice> kernel;
    std::unique_ptr<TakenWorkspace> workspace;                    // null: there is none, or it is the caller's
    std::unique_ptr<const WorkspaceOwners::Held> given_workspace; // of the caller
    std::vector<std::byte> block;
    std::vector<void*> parameters;
    LaunchPacket packet;
    const LoadedCode* code = nullptr; // of `kernel`
  };
  explicit BoundKernel(std::shared_ptr<const BoundLaunch> launch) : launch_(std::move(launch)) {}
  std::shared_ptr<const BoundLaunch> launch_;
};

// A cheap value; copies share one loaded kernel, which is unloaded with the last of them. Thread-safe.
class LoadedKernel {
public:
  const Kernel& kernel() const;

  // Checks everything that can be checked before a launch, once: every tensor and scalar is there and no other; types, ranks,
  // static sizes; run-time sizes equal wherever they occur and within their bounds; addresses and strides aligned as the
  // kernel's vector accesses need, strides within the reach of its 32-bit offsets; no output overlaps another tensor, save an
  // in-place pair, which must be one and the same; the grid within what HIP takes. On an emulated device also that every tensor
  // lies within an allocation. Throws UserError that names the argument.
  // Run-time sizes are those of the tensors; they may be given as numbers too, and must agree then. An in-place output may be
  // given under either name. The workspace is taken from a pool of this kernel (zeroed once, freed with the kernel), unless it is
  // given by name: zeroed before the first launch, and of no other kernel that is bound at the time.
  BoundKernel bind(std::initializer_list<Argument> arguments) const { return bind(std::span(arguments.begin(), arguments.size())); }
  BoundKernel bind(std::span<const Argument> arguments) const;

private:
  friend class Device;
  explicit LoadedKernel(std::shared_ptr<KernelOnDevice> on_device) : on_device_(std::move(on_device)) {}
  std::shared_ptr<KernelOnDevice> on_device_;
};

} // namespace kiln
