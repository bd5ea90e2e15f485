#include "stages/checkpoint/single_file.hpp"

#include <fmt/format.h>

#include <utility>

#include "stages/base/error.hpp"
#include "stages/checkpoint/weights_file.hpp"

namespace zerolab {
namespace fs = std::filesystem;

SafetensorsWriter header_of_model(const std::map<std::string, std::string>& tied,
                                  const nlohmann::ordered_json& run) {
  SafetensorsWriter header;
  header.note("format", "pt");  // what libraries look for before they load a file
  for (const auto& [alias, name] : tied) header.note(alias, name);
  if (run.is_object() && run.contains("model")) {
    header.note(std::string(kModelNote), run["model"].dump());
  }
  return header;
}

SingleFile::SingleFile(fs::path path, const SafetensorsWriter& header)
    : path_(std::move(path)),
      partial_(path_.parent_path() / fmt::format(".{}.partial", path_.filename().string())),
      header_(header.header()),
      expected_(static_cast<Index>(header.text().size()) + header_.data_bytes()),
      file_(partial_, expected_) {
  file_.write(header.text());
  written_ = expected_ - header_.data_bytes();
}

SingleFile::~SingleFile() {
  std::error_code ignored;
  if (!finished_) fs::remove(partial_, ignored);
}

void SingleFile::write(std::span<const std::byte> bytes) {
  file_.write(bytes);
  written_ += static_cast<Index>(bytes.size());
}

void SingleFile::write(Index bytes, const std::function<void(Index, std::span<std::byte>)>& fill) {
  file_.write(bytes, fill);
  written_ += bytes;
}

Index SingleFile::finish() {
  file_.close();
  const SafetensorsHeader there = read_header(partial_.string());
  if (written_ != expected_ || there.data_bytes() != header_.data_bytes() ||
      there.tensors.size() != header_.tensors.size()) {
    throw Error(Code::internal,
                fmt::format("{} got {} bytes of {}", path_.string(), written_, expected_), "");
  }
  rename_durably(partial_, path_);
  finished_ = true;
  return expected_;
}

}  // namespace zerolab
