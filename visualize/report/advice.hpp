#pragma once

#include "visualize/report/run_data.hpp"

namespace zerolab::report {

/// Something that a reader should know of a run, in plain words.
struct Remark {
  enum class Kind { failure, warning, hint, missing };
  Kind kind = Kind::hint;
  std::string text;
};

/// The gravest first. `missing` ones say what a log does not tell, and why.
std::vector<Remark> remarks_on(const RunData& run);

/// The smallest stage3_prefetch_bucket_size with which the gathers that a step of this run waits
/// for would have begun early enough, in elements; 0 if it waits for none.
Count prefetch_to_hide_waits(const RunData& run);

/// 43%; 4.3% below a tenth.
std::string in_percent(double share);

}  // namespace zerolab::report
