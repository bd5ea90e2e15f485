#include "stages/checkpoint/weights_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

struct Renamed {
  std::string_view theirs, ours;
  bool transposed = false;
};
// Of a whole model, and of a block behind "h.<i>.".
constexpr std::array kOutside{
    Renamed{"wte.weight", "token_embedding.weight"},
    Renamed{"wpe.weight", "position_embedding.weight"}, Renamed{"ln_f.weight", "final_norm.weight"},
    Renamed{"ln_f.bias", "final_norm.bias"}, Renamed{"lm_head.weight", "head.weight"}};
constexpr std::array kInBlock{Renamed{"ln_1.weight", "norm1.weight"},
                              Renamed{"ln_1.bias", "norm1.bias"},
                              Renamed{"attn.c_attn.weight", "attention.qkv.weight", true},
                              Renamed{"attn.c_attn.bias", "attention.qkv.bias"},
                              Renamed{"attn.c_proj.weight", "attention.projection.weight", true},
                              Renamed{"attn.c_proj.bias", "attention.projection.bias"},
                              Renamed{"ln_2.weight", "norm2.weight"},
                              Renamed{"ln_2.bias", "norm2.bias"},
                              Renamed{"mlp.c_fc.weight", "mlp.up.weight", true},
                              Renamed{"mlp.c_fc.bias", "mlp.up.bias"},
                              Renamed{"mlp.c_proj.weight", "mlp.down.weight", true},
                              Renamed{"mlp.c_proj.bias", "mlp.down.bias"}};
// Masks that some versions save beside the weights.
constexpr std::array<std::string_view, 2> kNoWeights{"attn.bias", "attn.masked_bias"};

constexpr std::string_view kPrefix = "transformer.";

struct OurName {
  std::string name;  // empty: it is no weight
  bool transposed = false;
};

// Null if GPT-2 has nothing of this name.
std::optional<OurName> name_of_gpt2(std::string_view name) {
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  for (const Renamed& each : kOutside) {
    if (each.theirs == name) return OurName{std::string(each.ours), false};
  }
  if (!name.starts_with("h.")) return std::nullopt;
  name.remove_prefix(2);
  const std::size_t dot = name.find('.');
  const std::string_view number = name.substr(0, dot);
  if (dot == std::string_view::npos || number.empty() || number.size() > 6 ||
      number.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  name.remove_prefix(dot + 1);
  for (const std::string_view each : kNoWeights) {
    if (each == name) return OurName{};
  }
  for (const Renamed& each : kInBlock) {
    if (each.theirs == name) {
      return OurName{fmt::format("blocks.{}.{}", number, each.ours), each.transposed};
    }
  }
  return std::nullopt;
}

[[noreturn]] void mismatch(const std::string& what, const std::string& way_out) {
  throw Error(Code::checkpoint_mismatch, what, way_out);
}

}  // namespace

WeightsFile::WeightsFile(const std::string& path, const std::map<std::string, std::string>& tied)
    : file_(path), header_(read_header(path)) {
  take_names();
  untie(tied);
  for (const auto& [name, place] : places_) {
    if (dtype_named(place.entry.dtype)) continue;
    mismatch(fmt::format("{} has '{}' as {}", path, place.entry.name, place.entry.dtype),
             "zerolab reads F32, F16 and BF16: convert it with the library that wrote it");
  }
}

void WeightsFile::take_names() {
  of_gpt2_ = std::any_of(header_.tensors.begin(), header_.tensors.end(), [](const auto& entry) {
    return entry.name == "wte.weight" || entry.name == "transformer.wte.weight";
  });
  for (const TensorEntry& entry : header_.tensors) {
    OurName ours{entry.name, false};
    if (of_gpt2_) ours = name_of_gpt2(entry.name).value_or(ours);
    if (ours.name.empty()) continue;
    if (ours.transposed && entry.shape.size() != 2) {
      mismatch(fmt::format("{} has '{}' {}, and GPT-2 has a matrix there", file_.path(), entry.name,
                           to_string(entry.shape)),
               "take another file");
    }
    if (!places_.emplace(ours.name, Place{entry, ours.transposed}).second) {
      mismatch(fmt::format("{} has '{}' twice", file_.path(), ours.name), "take another file");
    }
  }
}

// A second copy of a weight is left out if it is one.
void WeightsFile::untie(const std::map<std::string, std::string>& tied) {
  for (const auto& [alias, name] : tied) {
    const auto second = places_.find(alias);
    if (second == places_.end()) continue;
    const auto first = places_.find(name);
    if (first == places_.end()) {
      places_.emplace(name, second->second);
    } else if (!same_values(first->second.entry, second->second.entry)) {
      mismatch(fmt::format("{} has different values for '{}' and '{}', which the model shares",
                           file_.path(), first->second.entry.name, second->second.entry.name),
               "zerolab has no model with a head of its own: take a file in which they are tied");
    }
    places_.erase(alias);
  }
}

bool WeightsFile::same_values(const TensorEntry& a, const TensorEntry& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  std::vector<std::byte> mine(kBlockBytes), other(kBlockBytes);
  for (Index done = 0; done < a.end - a.begin; done += kBlockBytes) {
    const auto count = static_cast<std::size_t>(std::min(kBlockBytes, a.end - a.begin - done));
    file_.read(header_.data_begin + a.begin + done, std::span(mine).first(count));
    file_.read(header_.data_begin + b.begin + done, std::span(other).first(count));
    if (std::memcmp(mine.data(), other.data(), count) != 0) return false;
  }
  return true;
}

std::vector<SavedParameter> WeightsFile::parameters() const {
  std::vector<SavedParameter> parameters;
  for (const auto& [name, place] : places_) {
    SavedParameter parameter{name, place.entry.shape, true};
    if (place.transposed) std::swap(parameter.shape[0], parameter.shape[1]);
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

void WeightsFile::read(const std::string& parameter, std::string_view /*state*/, Range range,
                       const TakeElements& take) {
  const Place& place = places_.at(parameter);
  const Dtype dtype = *dtype_named(place.entry.dtype);
  const Index size = size_of(dtype);
  if (place.transposed) {
    const std::vector<std::byte>& whole = transposed(parameter, place);
    take(range, dtype,
         std::span(whole).subspan(static_cast<std::size_t>(range.begin * size),
                                  static_cast<std::size_t>(range.size() * size)));
    return;
  }
  Index done = range.begin;
  read_bytes(place.entry, range.begin * size, range.end * size,
             [&](std::span<const std::byte> bytes) {
               const Index count = static_cast<Index>(bytes.size()) / size;
               take({done, done + count}, dtype, bytes);
               done += count;
             });
}

void WeightsFile::read_bytes(const TensorEntry& entry, Index begin, Index end,
                             const std::function<void(std::span<const std::byte>)>& take) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(kBlockBytes, end - begin)));
  for (Index count = 0; begin < end; begin += count) {
    count = std::min(static_cast<Index>(bytes.size()), end - begin);
    const auto part = std::span(bytes).first(static_cast<std::size_t>(count));
    file_.read(header_.data_begin + entry.begin + begin, part);
    bytes_read_ += count;
    take(part);
  }
}

const std::vector<std::byte>& WeightsFile::transposed(const std::string& parameter,
                                                      const Place& place) {
  if (turned_ == parameter) return turned_bytes_;
  const auto size = static_cast<std::size_t>(size_of(*dtype_named(place.entry.dtype)));
  const auto in = static_cast<std::size_t>(place.entry.shape[0]);
  const auto out = static_cast<std::size_t>(place.entry.shape[1]);
  turned_ = parameter;
  turned_bytes_.resize(in * out * size);
  std::size_t at = 0;  // of the file's [in, out]
  read_bytes(place.entry, 0, place.entry.end - place.entry.begin,
             [&](std::span<const std::byte> bytes) {
               for (; !bytes.empty(); bytes = bytes.subspan(size), ++at) {
                 std::memcpy(turned_bytes_.data() + ((at % out) * in + at / out) * size,
                             bytes.data(), size);
               }
             });
  return turned_bytes_;
}

}  // namespace zerolab
