#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stages/checkpoint/state_reader.hpp"

namespace zerolab {

/// The weights of a model in one safetensors file, under zerolab's names or under those of GPT-2 as
/// it is published ("h.0.attn.c_attn.weight", with or without "transformer." before it), where the
/// weights of linear layers lie transposed: [in, out].
class WeightsFile : public StateSource {
 public:
  /// `tied`: second names of parameters (checkpoint/tied.hpp). Throws Error: as read_header;
  /// Code::checkpoint_mismatch for a tensor of a type that zerolab does not compute with, and for a
  /// tied one that is there under both names with different values.
  explicit WeightsFile(const std::string& path,
                       const std::map<std::string, std::string>& tied = {});

  /// Under zerolab's names, and with zerolab's shapes.
  std::vector<SavedParameter> parameters() const;
  bool of_gpt2() const { return of_gpt2_; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

  void read(const std::string& parameter, std::string_view state, Range range,
            const TakeElements& take) override;
  Index bytes_read() const override { return bytes_read_; }
  Index files_opened() const override { return 1; }

 private:
  struct Place {
    TensorEntry entry;
    bool transposed = false;
  };

  void take_names();
  void untie(const std::map<std::string, std::string>& tied);
  bool same_values(const TensorEntry& a, const TensorEntry& b);
  void read_bytes(const TensorEntry& entry, Index begin, Index end,
                  const std::function<void(std::span<const std::byte>)>& take);
  const std::vector<std::byte>& transposed(const std::string& parameter, const Place& place);

  InputFile file_;
  SafetensorsHeader header_;
  bool of_gpt2_ = false;
  std::map<std::string, Place> places_;  // by zerolab's name
  std::string turned_;                   // the parameter that `turned_bytes_` has, row by row
  std::vector<std::byte> turned_bytes_;
  Index bytes_read_ = 0;
};

/// The key in a file's metadata under which zerolab writes what model it is of.
inline constexpr std::string_view kModelNote = "zerolab.model";

}  // namespace zerolab
