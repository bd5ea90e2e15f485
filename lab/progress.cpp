#include "lab/progress.hpp"

#include <fmt/format.h>

#include "stages/memory/ledger.hpp"

namespace zerolab {
namespace {

std::string human_count(double count) {
  if (count < 1e3) return fmt::format("{:.0f}", count);
  if (count < 1e6) return fmt::format("{:.1f}k", count / 1e3);
  return fmt::format("{:.1f}M", count / 1e6);
}

}  // namespace

std::string progress_text(const Progress& progress) {
  return fmt::format("step {}/{}  loss {:.4f}  {} tokens/s  device {}", progress.step,
                     progress.steps, progress.loss, human_count(progress.tokens_per_second),
                     human_bytes(progress.device_bytes));
}

void ProgressLine::show(const Progress& progress) {
  if (!terminal_) return;
  out_ << kBackAndErase << label_ << "  " << progress_text(progress) << std::flush;
  shown_ = true;
}

void ProgressLine::clear() {
  if (shown_) out_ << kBackAndErase << std::flush;
  shown_ = false;
}

}  // namespace zerolab
