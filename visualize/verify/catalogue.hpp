#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "visualize/log/run_folder.hpp"

namespace zerolab::verify {

/// The parameters and modules of a run by their places in run.json, and what each module reads.
class Catalogue {
 public:
  /// `folder` must outlive this. Throws log::Unreadable when modules name what is not there.
  explicit Catalogue(const log::RunFolder& folder);

  const log::Run& run() const { return run_; }
  const log::Parameter& operator[](std::size_t parameter) const {
    return run_.parameters[parameter];
  }
  std::optional<std::size_t> parameter(const std::string& name) const;
  std::optional<std::size_t> module(const std::string& name) const;

  /// Its own parameters and its external ones; of a leaf also those of everything below it, which
  /// makes no visits of its own.
  const std::vector<std::size_t>& reads(std::size_t module) const { return reads_[module]; }

 private:
  void collect(std::size_t module, std::vector<bool>& seen, std::vector<std::size_t>& reads) const;

  const log::Run& run_;
  std::unordered_map<std::string, std::size_t> parameters_, modules_;
  std::vector<std::vector<std::size_t>> reads_;
};

}  // namespace zerolab::verify
