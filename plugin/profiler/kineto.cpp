// The device in torch.profiler: gives Kineto, PyTorch's collector of traces, the commands that ran,
// their times, and the operators that they belong to.
#include "profiler/register.h"

// torch_cpu.dll does not export Kineto: on Windows there are only the operators' times of
// torch.autograd.profiler.
#if defined(_WIN32)

namespace dml {
void register_kineto() {}
}  // namespace dml

#else

#define FMT_HEADER_ONLY 1
#include <kineto/libkineto.h>
#include <kineto/output_base.h>

#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "core/backend.h"
#include "core/device.h"

namespace dml {
namespace {

using libkineto::ActivityType;

// The type of calls that enqueue work, for the backend that the device is registered as.
ActivityType launch_type() { return is_cuda() ? ActivityType::CUDA_RUNTIME : ActivityType::PRIVATEUSE1_RUNTIME; }

// The number of a device's only queue, which is a track of the trace.
constexpr int kQueue = 0;

struct Activity : DmlActivity {
  explicit Activity(const DmlActivity& a) : DmlActivity(a), label("dml::" + std::string(a.name)), operator_name(a.op) {}
  std::string label, operator_name;
};

// In some versions these types have a constructor, whose order of arguments differs from the order
// of the fields; in later versions they are aggregates.
template <class Info>
Info device_info(int64_t id) {
  const std::string name = c10::Device(backend.type, static_cast<c10::DeviceIndex>(id)).str();
  return Info{id, id + libkineto::kExceedMaxPid, name, name};
}

template <class Info>
Info resource_info(int64_t device) {
  if constexpr (std::is_aggregate_v<Info>) {
    return Info{.id = kQueue, .sortIndex = kQueue, .deviceId = device, .name = "queue"};
  } else {
    return Info(device, kQueue, kQueue, "queue");
  }
}

std::string list(const uint32_t (&n)[3]) {
  return "[" + std::to_string(n[0]) + ", " + std::to_string(n[1]) + ", " + std::to_string(n[2]) + "]";
}

class Session final : public libkineto::IActivityProfilerSession {
 public:
  explicit Session(bool launches) : launches_(launches) {}

  void start() override {
    if (dml_profile_start() != DML_OK) warn(std::string("the profile lacks a device's times: ") + dml_last_error());
    status_ = libkineto::TraceStatus::RECORDING;
  }

  void stop() override {
    const auto keep = [](void* to, const DmlActivity* activity) {
      static_cast<std::vector<Activity>*>(to)->emplace_back(*activity);
    };
    if (dml_profile_stop(&activities_, keep) != DML_OK) warn(dml_last_error());
    status_ = libkineto::TraceStatus::PROCESSING;
  }

  std::vector<std::string> errors() override { return {}; }

  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(logger, [](int32_t) { return nullptr; }, 0, 0);
  }

  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked, int64_t start,
                    int64_t end) override {
    trace_ = std::make_unique<libkineto::CpuTraceBuffer>();
    trace_->span = libkineto::TraceSpan(start, end, "dml");
    trace_->gpuOpCount = static_cast<int>(activities_.size());
    uint32_t flow = 0;
    for (const Activity& activity : activities_) {
      const libkineto::ITraceActivity* op = linked(static_cast<int32_t>(activity.correlation));
      ++flow;
      if (launches_ && op != nullptr) add_launch(logger, activity, *op, flow);
      add_run(logger, activity, op, flow);
      if (activity.device > last_device_) last_device_ = activity.device;
    }
    // getDeviceInfo describes only the first device.
    for (int i = 1; i <= last_device_; ++i) {
      logger.handleDeviceInfo(device_info<libkineto::DeviceInfo>(i), start);
    }
    activities_.clear();
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return std::make_unique<libkineto::DeviceInfo>(device_info<libkineto::DeviceInfo>(0));
  }

  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    std::vector<libkineto::ResourceInfo> queues;
    for (int i = 0; i <= last_device_; ++i) queues.push_back(resource_info<libkineto::ResourceInfo>(i));
    return queues;
  }

  // Owns what was logged by reference.
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(trace_); }

  void pushCorrelationId(uint64_t id) override {
    ids().push_back(id);
    dml_profile_correlate(id);
  }

  void popCorrelationId() override {
    if (!ids().empty()) ids().pop_back();
    dml_profile_correlate(ids().empty() ? 0 : ids().back());
  }

 private:
  // Operators are nested.
  static std::vector<uint64_t>& ids() {
    thread_local std::vector<uint64_t> stack;
    return stack;
  }

  libkineto::GenericTraceActivity& add(ActivityType type, const std::string& name, const Activity& activity,
                                       const libkineto::ITraceActivity* op, uint32_t flow) {
    trace_->emplace_activity(trace_->span, type, name);
    libkineto::GenericTraceActivity& added = *trace_->activities.back();
    added.id = static_cast<int32_t>(activity.correlation);
    added.linked = op;
    // Viewers draw an arrow from the launch to the execution.
    added.flow.id = flow;
    added.flow.type = libkineto::kLinkAsyncCpuGpu;
    return added;
  }

  // The host's side, on the thread of the operator.
  void add_launch(libkineto::ActivityLogger& logger, const Activity& activity, const libkineto::ITraceActivity& op,
                  uint32_t flow) {
    auto& launch = add(launch_type(), "dml_launch", activity, &op, flow);
    launch.startTime = activity.enqueued[0];
    launch.endTime = activity.enqueued[1];
    launch.device = static_cast<int32_t>(op.deviceId());
    launch.resource = static_cast<int32_t>(op.resourceId());
    launch.threadId = op.getThreadId();
    launch.flow.start = 1;
    logger.handleActivity(launch);
  }

  // The device's side.
  void add_run(libkineto::ActivityLogger& logger, const Activity& activity, const libkineto::ITraceActivity* op,
               uint32_t flow) {
    const bool kernel = activity.work == DML_WORK_KERNEL;
    const bool replay = activity.work == DML_WORK_REPLAY;
    auto& run = add(kernel || replay ? ActivityType::CONCURRENT_KERNEL : ActivityType::GPU_MEMCPY, activity.label,
                    activity, op, launches_ && op != nullptr ? flow : 0);
    run.startTime = activity.ran[0];
    run.endTime = activity.ran[1];
    run.device = activity.device;
    run.resource = kQueue;
    run.addMetadataQuoted("operator", activity.operator_name);
    if (kernel) {
      run.addMetadata("grid", list(activity.groups));
      run.addMetadata("block", list(activity.group_size));
    }
    if (replay) {
      run.addMetadata("launches", activity.launches);
    } else {
      run.addMetadata("bytes read", activity.bytes_read);
      run.addMetadata("bytes written", activity.bytes_written);
    }
    logger.handleActivity(run);
  }

  const bool launches_;
  int last_device_ = 0;
  std::vector<Activity> activities_;
  std::unique_ptr<libkineto::CpuTraceBuffer> trace_;
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return types_; }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType>& wanted,
                                                                 const libkineto::Config&) override {
    if (wanted.count(ActivityType::CONCURRENT_KERNEL) == 0) return nullptr;
    return std::make_unique<Session>(wanted.count(launch_type()) != 0);
  }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t, int64_t, const std::set<ActivityType>& wanted,
                                                                 const libkineto::Config& config) override {
    return configure(wanted, config);
  }

 private:
  const std::string name_ = "dml";
  const std::set<ActivityType> types_ = {ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY, launch_type()};
};

}  // namespace

void register_kineto() {
  libkineto::api().registerProfilerFactory([] { return std::make_unique<Profiler>(); });
}

}  // namespace dml

#endif
