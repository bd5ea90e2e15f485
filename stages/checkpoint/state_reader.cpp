#include "stages/checkpoint/state_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "stages/base/error.hpp"
#include "stages/base/half.hpp"

namespace zerolab {
namespace {

template <typename From, typename To>
void convert(std::span<const std::byte> in, std::byte* out) {
  for (std::size_t i = 0; i < in.size() / sizeof(From); ++i) {
    From value;
    std::memcpy(&value, in.data() + i * sizeof(From), sizeof(From));
    const To result = rounded<To>(widened(value));
    std::memcpy(out + i * sizeof(To), &result, sizeof(To));
  }
}

template <typename From>
void convert_from(std::span<const std::byte> in, Dtype to, std::byte* out) {
  switch (to) {
    case Dtype::fp16:
      return convert<From, Fp16>(in, out);
    case Dtype::bf16:
      return convert<From, Bf16>(in, out);
    default:
      return convert<From, float>(in, out);
  }
}

}  // namespace

std::vector<std::byte> converted(std::span<const std::byte> bytes, Dtype from, Dtype to) {
  if (from == to) return {bytes.begin(), bytes.end()};
  std::vector<std::byte> result(bytes.size() / static_cast<std::size_t>(size_of(from)) *
                                static_cast<std::size_t>(size_of(to)));
  switch (from) {
    case Dtype::fp16:
      convert_from<Fp16>(bytes, to, result.data());
      break;
    case Dtype::bf16:
      convert_from<Bf16>(bytes, to, result.data());
      break;
    default:
      convert_from<float>(bytes, to, result.data());
  }
  return result;
}

StateReader::StateReader(const Checkpoint& checkpoint, Index cache_bytes)
    : checkpoint_(checkpoint),
      most_blocks_(static_cast<std::size_t>(std::max<Index>(1, cache_bytes / kBlockBytes))) {
  const Manifest& manifest = checkpoint_.manifest();
  parts_.resize(manifest.parameters.size());
  for (std::size_t i = 0; i < manifest.parameters.size(); ++i) {
    ids_.emplace(manifest.parameters[i].name, i);
  }
  for (std::size_t rank = 0; rank < manifest.shards.size(); ++rank) {
    for (const SavedSlice& slice : manifest.shards[rank].slices) {
      parts_[slice.parameter].push_back({slice.range, rank});
    }
  }
  for (std::vector<Part>& parts : parts_) {
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.range.begin < b.range.begin; });
  }
}

void StateReader::read(const std::string& parameter, std::string_view state, Range range,
                       const TakeElements& take) {
  const Dtype dtype = checkpoint_.manifest().dtype_of(state);
  const std::string name = fmt::format("{}/{}", state, parameter);
  for (const Part& part : parts_.at(ids_.at(parameter))) {
    const Range wanted = intersect(part.range, range);
    if (wanted.size() == 0) continue;
    const OpenShard& from = shard(part.rank);
    const Index begin = from.begins.at(name) + (wanted.begin - part.range.begin) * size_of(dtype);
    Index done = wanted.begin;
    read_bytes(part.rank, from.file, begin, begin + wanted.size() * size_of(dtype),
               [&](std::span<const std::byte> bytes) {
                 const Index count = static_cast<Index>(bytes.size()) / size_of(dtype);
                 take({done, done + count}, dtype, bytes);
                 done += count;
               });
  }
}

const StateReader::OpenShard& StateReader::shard(std::size_t rank) {
  std::unique_ptr<OpenShard>& shard = shards_[rank];
  if (!shard) {
    auto opened = std::make_unique<OpenShard>(checkpoint_.file_of(rank));
    const Index expected = checkpoint_.manifest().shards[rank].digest.bytes;
    if (opened->file.bytes() != expected) {  // it has changed since the checkpoint was opened
      damaged(opened->file.path(),
              fmt::format("has {} bytes, the manifest says {}", opened->file.bytes(), expected));
    }
    check_header(rank, *opened);
    shard = std::move(opened);
  }
  return *shard;
}

void StateReader::check_header(std::size_t rank, OpenShard& shard) {
  const std::string& name = shard.file.path();
  std::string text;
  const auto append = [&text](std::span<const std::byte> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  read_bytes(rank, shard.file, 0, std::min(kLengthBytes, shard.file.bytes()), append);
  const Index length = header_length(text, shard.file.bytes(), name);
  text.clear();
  read_bytes(rank, shard.file, kLengthBytes, kLengthBytes + length, append);
  const SafetensorsHeader header = parse_header(text, shard.file.bytes(), name);
  const std::string wrong = difference(header, checkpoint_.manifest().shard_header(rank).header());
  if (!wrong.empty()) damaged(name, wrong);
  for (const TensorEntry& entry : header.tensors) {
    shard.begins.emplace(entry.name, header.data_begin + entry.begin);
  }
}

void StateReader::read_bytes(std::size_t rank, const InputFile& file, Index begin, Index end,
                             const std::function<void(std::span<const std::byte>)>& take) {
  while (begin < end) {
    const Index number = begin / kBlockBytes;
    const std::vector<std::byte>& bytes = block(rank, file, number);
    const Index offset = begin - number * kBlockBytes;
    const Index count = std::min(end - begin, static_cast<Index>(bytes.size()) - offset);
    take(std::span(bytes).subspan(static_cast<std::size_t>(offset),
                                  static_cast<std::size_t>(count)));
    begin += count;
  }
}

const std::vector<std::byte>& StateReader::block(std::size_t rank, const InputFile& file,
                                                 Index number) {
  const auto found = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& each) {
    return each.rank == rank && each.number == number;
  });
  if (found != blocks_.end()) {
    blocks_.splice(blocks_.begin(), blocks_, found);
    return blocks_.front().bytes;
  }
  const FileDigest& digest = checkpoint_.manifest().shards[rank].digest;
  const Index begin = number * kBlockBytes;
  const Index end = std::min(begin + kBlockBytes, digest.bytes);
  if (blocks_.size() < most_blocks_) {
    blocks_.push_front({rank, number, {}});
  } else {  // the memory of the one that was not needed for longest
    blocks_.splice(blocks_.begin(), blocks_, std::prev(blocks_.end()));
    blocks_.front().rank = rank;
    blocks_.front().number = number;
  }
  std::vector<std::byte>& bytes = blocks_.front().bytes;
  bytes.reserve(static_cast<std::size_t>(kBlockBytes));  // and never more than that
  bytes.resize(static_cast<std::size_t>(end - begin));
  file.read(begin, bytes);
  bytes_read_ += end - begin;
  if (xxh3(bytes) != digest.blocks[static_cast<std::size_t>(number)]) {
    blocks_.pop_front();
    damaged(file.path(), fmt::format("is not what was written: the checksum of bytes {} to {} "
                                     "differs",
                                     begin, end));
  }
  return bytes;
}

void StateReader::damaged(const std::string& file, const std::string& why) const {
  throw Error(Code::checkpoint_damaged, fmt::format("{} {}", file, why), checkpoint_.way_out());
}

}  // namespace zerolab
