#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "stages/checkpoint/checkpoint.hpp"

namespace zerolab {

/// Receives elements of a state in order, in pieces; `range` is in elements of the parameter.
using TakeElements =
    std::function<void(Range range, Dtype dtype, std::span<const std::byte> bytes)>;

/// Where the values of parameters can be read from, by name.
class StateSource {
 public:
  virtual ~StateSource() = default;
  /// Elements `range` of a parameter's state. Throws Error (Code::checkpoint_damaged).
  virtual void read(const std::string& parameter, std::string_view state, Range range,
                    const TakeElements& take) = 0;
  /// So far.
  virtual Index bytes_read() const = 0;
  virtual Index files_opened() const = 0;
};

/// The states of a checkpoint. Reads blocks, no more than a request needs, and checks each against
/// the manifest; the first read of a shard also checks its header. Keeps the latest blocks, of at
/// most so many bytes (one block at least): that is all the memory it takes beside the manifest.
class StateReader : public StateSource {
 public:
  static constexpr Index kDefaultCache = 16 * kBlockBytes;

  /// `checkpoint` must outlive it.
  explicit StateReader(const Checkpoint& checkpoint, Index cache_bytes = kDefaultCache);

  void read(const std::string& parameter, std::string_view state, Range range,
            const TakeElements& take) override;
  Index bytes_read() const override { return bytes_read_; }
  Index files_opened() const override { return static_cast<Index>(shards_.size()); }

 private:
  struct OpenShard {
    explicit OpenShard(std::string path) : file(std::move(path)) {}
    InputFile file;
    std::unordered_map<std::string, Index> begins;  // "state/parameter" -> byte in the file
  };
  struct Part {  // of a parameter
    Range range;
    std::size_t rank;
  };
  struct Block {
    std::size_t rank;
    Index number;
    std::vector<std::byte> bytes;
  };

  const OpenShard& shard(std::size_t rank);
  void check_header(std::size_t rank, OpenShard& shard);
  void read_bytes(std::size_t rank, const InputFile& file, Index begin, Index end,
                  const std::function<void(std::span<const std::byte>)>& take);
  const std::vector<std::byte>& block(std::size_t rank, const InputFile& file, Index number);
  [[noreturn]] void damaged(const std::string& file, const std::string& why) const;

  const Checkpoint& checkpoint_;
  std::unordered_map<std::string, std::size_t> ids_;
  std::vector<std::vector<Part>> parts_;  // by parameter, in the order of their elements
  std::map<std::size_t, std::unique_ptr<OpenShard>> shards_;
  std::list<Block> blocks_;  // the latest first
  std::size_t most_blocks_;
  Index bytes_read_ = 0;
};

/// The elements in another type, each rounded once.
std::vector<std::byte> converted(std::span<const std::byte> bytes, Dtype from, Dtype to);

}  // namespace zerolab
