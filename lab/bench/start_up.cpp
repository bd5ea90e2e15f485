#include <fmt/format.h>

#include <cstdlib>

#include "lab/bench/topics.hpp"
#include "lab/temporary_folder.hpp"

namespace zerolab::bench {
namespace {

constexpr double kTargetSeconds = 0.5;

Figure figure(const std::string& what, const std::vector<double>& seconds) {
  const Spread spread = spread_of(seconds);
  return {.what = what,
          .value = fmt::format("{:.2f} s", spread.median),
          .spread = fmt::format("{:.2f} to {:.2f}", spread.low, spread.high),
          .note = "",
          .target = fmt::format("at most {:.2f}", kTargetSeconds),
          .met = spread.median <= kTargetSeconds ? "yes" : "no"};
}

Work command(const std::string& line) {
  return {[line] {
    if (std::system((line + " >/dev/null").c_str()) == 0) return;
    throw Error(Code::internal, fmt::format("'{}' failed", line), "run it by hand to see why");
  }};
}

}  // namespace

std::vector<Figure> start_up(Effort effort) {
  const TemporaryFolder folder;
  const std::string train =
      fmt::format("train --model mlp-small --steps 1 --out {}/run", folder.path().string());
  const auto seconds =
      interleave(effort.rounds(10),
                 {command(fmt::format("{} {} -n 2", ZEROLAB_PROGRAM, train)),
                  command(fmt::format("{} -n 2 {} {}", ZEROLAB_MPIRUN, ZEROLAB_PROGRAM, train))});
  return {figure("2 threads", seconds[0]), figure("2 processes under mpirun", seconds[1])};
}

}  // namespace zerolab::bench
