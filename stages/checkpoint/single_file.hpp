#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "stages/checkpoint/file.hpp"
#include "stages/checkpoint/safetensors.hpp"

namespace zerolab {

/// The beginning of a header for a whole model in one file: notes the second names of tied weights,
/// as the safetensors library does, and what model it is, if `run` (Manifest::run) says so.
SafetensorsWriter header_of_model(const std::map<std::string, std::string>& tied,
                                  const nlohmann::ordered_json& run);

/// A safetensors file whose tensors are written one after the other. It has another name until it
/// is whole, and is taken away if it never is. Throws Error (Code::checkpoint_write).
class SingleFile {
 public:
  SingleFile(std::filesystem::path path, const SafetensorsWriter& header);
  ~SingleFile();
  SingleFile(const SingleFile&) = delete;
  SingleFile& operator=(const SingleFile&) = delete;

  void write(std::span<const std::byte> bytes);
  /// As OutputFile has it.
  void write(Index bytes, const std::function<void(Index, std::span<std::byte>)>& fill);
  Index written() const { return written_; }
  Index expected() const { return expected_; }
  double write_seconds() const { return file_.write_seconds(); }
  double sync_seconds() const { return file_.sync_seconds(); }
  /// Reads the header back, renames, and returns the bytes of the file. Throws also Error
  /// (Code::internal) when there is more or less in it than the header says.
  Index finish();

 private:
  std::filesystem::path path_, partial_;
  SafetensorsHeader header_;
  Index written_ = 0, expected_;
  bool finished_ = false;
  OutputFile file_;
};

}  // namespace zerolab
