#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "lab/table.hpp"
#include "stages/base/types.hpp"

namespace zerolab {

/// Takes away what a terminal has on the line of the cursor.
inline constexpr std::string_view kBackAndErase = "\r\x1b[K";

/// What one optimizer step has to say on the progress line.
struct Progress {
  Index step = 0;  // finished, from 1
  Index steps = 0;
  double loss = 0;
  double tokens_per_second = 0;
  Index device_bytes = 0;  // live on this rank
};

/// "step 12/30  loss 3.1416  18.2k tokens/s  device 4.21 MiB".
std::string progress_text(const Progress& progress);

/// "█████░░░░░░░░░░░░░░░  25%  64.0 MiB of 256 MiB", or with # and dots. `all` is positive.
std::string bytes_text(Index done, Index all, Style style);

/// One line that is written over again; for a terminal only, silent otherwise.
class ProgressLine {
 public:
  ProgressLine(std::ostream& out, bool terminal, std::string label)
      : out_(out), terminal_(terminal), label_(std::move(label)) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const Progress& progress) { write(progress_text(progress)); }
  /// A bar for bytes that are done, drawn anew as often as the percentage changes.
  void show_bytes(Index done, Index all, Style style);
  /// Takes the line away, so that something else can be written.
  void clear();

 private:
  void write(const std::string& text);

  std::ostream& out_;
  bool terminal_;
  std::string label_;
  bool shown_ = false;
  Index percent_ = -1;
};

}  // namespace zerolab
