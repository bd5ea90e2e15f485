#pragma once

#include "visualize/log/run_details.hpp"

namespace zerolab::report {

using log::Count;

/// What a rank has to hold and to send, by the formulas of the guides. Bytes.
struct Theory {
  /// Between two steps, with padding; nothing where the settings are not known.
  struct States {
    double parameters = 0, gradients = 0, optimizer = 0;
    double whole = 0;     // stage 3: gathered copies of parameters that stay whole
    std::string formula;  // bytes a parameter, without padding: "4 + 12/N"
    double per_parameter = 0;
  };
  std::optional<States> states;

  /// Sent by a rank in an optimizer step.
  struct Row {
    log::Op op = log::Op::barrier;
    double bytes = 0;
  };
  std::vector<Row> sent;
  std::string formula;  // of `sent`
  /// Stage 3 sends less where a parameter is still whole when the next module reads it, and more
  /// where blocks run again in backward.
  bool exact = true;
};

/// `dtype` is fp32, bf16 or fp16; empty where no summary says it.
Theory theory_of(const log::Run& run, const log::RunDetails& details, const std::string& dtype);

}  // namespace zerolab::report
