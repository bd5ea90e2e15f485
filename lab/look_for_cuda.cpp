#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "lab/doctor.hpp"
#include "stages/memory/ledger.hpp"

namespace zerolab {
namespace {

constexpr int kNameBytes = 256;

/// A shared library that may be missing. It stays open: drivers keep threads of their own in it.
class Library {
 public:
  explicit Library(const char* name) : handle_(dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {}
  explicit operator bool() const { return handle_ != nullptr; }

  /// Calls a function that says 0 when all went well; false if it does not, or is not there.
  template <typename... Args>
  bool call(const char* name, Args... args) const {
    const auto function = reinterpret_cast<int (*)(Args...)>(dlsym(handle_, name));
    return function != nullptr && function(args...) == 0;
  }

 private:
  void* handle_;
};

void ask_driver(Cuda& found) {
  const Library cuda("libcuda.so.1");
  int version = 0;
  if (!cuda || !cuda.call("cuDriverGetVersion", &version) || version == 0) return;
  found.driver = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  int count = 0;
  if (!cuda.call("cuInit", 0U) || !cuda.call("cuDeviceGetCount", &count)) return;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    std::array<char, kNameBytes> name{};
    std::size_t bytes = 0;
    if (!cuda.call("cuDeviceGet", &device, i) ||
        !cuda.call("cuDeviceGetName", name.data(), kNameBytes, device) ||
        !cuda.call("cuDeviceTotalMem_v2", &bytes, device)) {
      continue;
    }
    found.devices.push_back(
        fmt::format("{}, {}", name.data(), human_bytes(static_cast<Index>(bytes))));
  }
}

std::string nccl_version() {
  const Library nccl("libnccl.so.2");
  int version = 0;
  if (!nccl || !nccl.call("ncclGetVersion", &version)) return "";
  if (version < 10'000) {  // up to 2.8 the version was 2809, since then 20900
    return fmt::format("{}.{}.{}", version / 1000, version % 1000 / 100, version % 100);
  }
  return fmt::format("{}.{}.{}", version / 10'000, version % 10'000 / 100, version % 100);
}

std::string nvcc() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(fmt::format("{}:/usr/local/cuda/bin", path == nullptr ? "" : path));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path file = std::filesystem::path(folder) / "nvcc";
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) return file.string();
  }
  return "";
}

}  // namespace

Cuda look_for_cuda() {
  Cuda found;
  ask_driver(found);
  found.compiler = nvcc();
  found.nccl = nccl_version();
  return found;
}

}  // namespace zerolab
