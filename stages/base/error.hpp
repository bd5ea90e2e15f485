#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace zerolab {

/// Error codes, written `ZL<number>`. The hundreds are the exit status of the program
/// (docs/errors.md): 1 internal, 2 usage or configuration, 3 out of memory, 4 parameter state,
/// 5 numerics, 6 checkpoint, 7 communication, 128 + n ended by signal n.
enum class Code : int {
  internal = 101,
  clinic = 102,
  usage = 201,
  config_value = 202,
  config_syntax = 203,
  config_unknown_key = 204,
  config_contradiction = 205,
  config_unsupported = 206,
  data = 207,
  output_folder = 208,
  model_description = 209,
  ranks_disagree = 210,
  run_folder = 211,
  clinic_page = 212,
  out_of_memory = 301,
  parameter_not_available = 401,
  illegal_move = 402,
  released_while_active = 403,
  left_gathered = 404,
  gradient_state = 405,
  released_in_flight = 406,
  fetched_twice = 407,
  waited_without_gather = 408,
  use_count = 409,
  bucket_state = 410,
  held_by_scope = 411,
  edit_without_owner = 412,
  log_states = 413,
  not_bit_identical = 501,
  not_finite = 502,
  replicas_differ = 503,
  loss_scale_at_minimum = 504,
  checkpoint_write = 601,
  checkpoint_missing = 602,
  checkpoint_damaged = 603,
  checkpoint_mismatch = 604,
  not_gathered_on_save = 605,
  checkpoint_tags = 606,
  communication = 701,
  mpi_singletons = 702,
  peer_failed = 703,
  mpi_thread_level = 704,
  comm_timeout = 705,
  collective_mismatch = 706,
  module_order = 707,
  log_collectives = 708,
  interrupted = 13001,  // 128 + SIGINT
  terminated = 14301,   // 128 + SIGTERM
};

struct CodeInfo {
  Code code;
  std::string_view title;
};

/// Every code there is, in order; docs/errors.md has one section for each.
std::span<const CodeInfo> all_codes();

/// "ZL401".
std::string code_name(Code code);

/// An error that a user can cause and can mend: what happened, why, and the way out.
class Error : public std::runtime_error {
 public:
  Error(Code code, std::string what_happened, std::string way_out);

  Code code() const { return code_; }
  int exit_status() const { return static_cast<int>(code_) / 100; }
  const std::string& what_happened() const { return what_happened_; }
  const std::string& way_out() const { return way_out_; }
  /// The same for programs (error.json); null if there is nothing more to say.
  virtual nlohmann::ordered_json details() const;

 private:
  Code code_;
  std::string what_happened_;
  std::string way_out_;
};

}  // namespace zerolab
