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

std::string bytes_text(Index done, Index all, Style style) {
  constexpr Index kColumns = 20;
  const bool unicode = style == Style::unicode;
  std::string bar;
  for (Index i = 0; i < kColumns; ++i) {
    const bool filled = (i + 1) * all <= done * kColumns;
    bar += unicode ? (filled ? "█" : "░") : (filled ? "#" : ".");
  }
  return fmt::format("{} {:3}%  {} of {}", bar, done * 100 / all, human_bytes(done),
                     human_bytes(all));
}

void ProgressLine::write(const std::string& text) {
  if (!terminal_) return;
  out_ << kBackAndErase << label_ << "  " << text << std::flush;
  shown_ = true;
}

void ProgressLine::show_bytes(Index done, Index all, Style style) {
  const Index percent = done * 100 / all;
  if (percent == percent_) return;
  percent_ = percent;
  write(bytes_text(done, all, style));
}

void ProgressLine::clear() {
  if (shown_) out_ << kBackAndErase << std::flush;
  shown_ = false;
}

}  // namespace zerolab
