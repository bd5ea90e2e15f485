#include "lab/compare_table.hpp"

#include <cmath>
#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

// Four stages of a model of 170,560 parameters on four ranks, with plausible figures.
CompareResult example() {
  CompareResult result{"gpt-nano", 170'560, 4, "threads", 1, false, {}};
  const Index whole = 4 * 170'560;
  for (int k = 0; k <= 3; ++k) {
    StageResult stage;
    stage.stage = k;
    stage.loss = {5.5467, 4.25, 3.3125};
    stage.grad_norm = {2.5, 1.5, 0.75};
    stage.param_hash = {1, 2, 3};
    stage.validation_loss = {3.4375};
    stage.step_seconds = {0.5, 0.0812, 0.0823};
    Usage& held = stage.category_peak;
    held[Category::parameters] = k < 3 ? whole : whole / 4;
    held[Category::gradients] = k < 2 ? whole : whole / 4;
    held[Category::optimizer] = k < 1 ? 2 * whole : 2 * whole / 4;
    held[Category::activations] = 3'400'000;
    held[Category::gather_buffers] = k == 3 ? 200'000 : 0;
    held[Category::reduce_buffers] = 85'000;
    stage.peak = held;
    stage.traffic = {{Op::reduce_scatter, {.bytes_sent = 3 * 511'680}},
                     {Op::control, {.bytes_sent = 999}}};
    stage.traffic[k == 0 ? Op::all_reduce : Op::all_gather].bytes_sent = 3 * 511'680;
    result.stages.push_back(stage);
  }
  return result;
}

void check_width(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(display_width(line) <= 110);
  }
}

TEST_CASE("the comparison is printed as it was approved", "[lab]") {
  const std::string text = compare_table(example(), Style::ascii);
  check_width(text);
  CHECK(text == R"approved(
 gpt-nano, 170,560 parameters, 4 ranks, threads; memory of rank 0, each column at its own peak

       loss                                                         gather   reduce              sent    step
 stage first -> last    parameters gradients optimizer activations buffers  buffers     peak per step    time
-------------------------------------------------------------------------------------------------------------
     0 5.5467 -> 3.3125    666 KiB   666 KiB  1.30 MiB    3.24 MiB       - 83.0 KiB 5.93 MiB  999 KiB 82.3 ms
     1 5.5467 -> 3.3125    666 KiB   666 KiB   333 KiB    3.24 MiB       - 83.0 KiB 4.95 MiB  999 KiB 82.3 ms
     2 5.5467 -> 3.3125    666 KiB   167 KiB   333 KiB    3.24 MiB       - 83.0 KiB 4.46 MiB  999 KiB 82.3 ms
     3 5.5467 -> 3.3125    167 KiB   167 KiB   333 KiB    3.24 MiB 195 KiB 83.0 KiB 4.16 MiB  999 KiB 82.3 ms

 peak of rank 0: P parameters G gradients O optimizer a activations g gather r reduce
 stage 0 PPPPPPPPPGGGGGGGGGOOOOOOOOOOOOOOOOOOOaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaar 5.93 MiB
 stage 1 PPPPPPPPPGGGGGGGGGOOOOOaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaar 4.95 MiB
 stage 2 PPPPPPPPPGGGOOOOaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaar 4.46 MiB
 stage 3 PPGGGOOOOaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaagggr 4.16 MiB

 held-out loss after step 3: 3.4375 nats per byte
 bit-identical: yes (loss, gradient norm, parameter hash at all 3 steps)
)approved");
}

TEST_CASE("on a terminal the comparison has box lines and shades and the same width", "[lab]") {
  const std::string text = compare_table(example(), Style::unicode);
  check_width(text);
  CHECK(contains(text, "─"));
  CHECK(contains(text, "5.5467 → 3.3125"));
  CHECK(contains(text, "█"));
}

TEST_CASE("the widest figures still fit in 110 columns", "[lab]") {
  CompareResult result = example();
  for (StageResult& stage : result.stages) {
    stage.loss = {10.8, 10.8};
    for (std::size_t c = 0; c < kCategories; ++c) {
      stage.category_peak.by_category[c] = 1023 * (Index{1} << 20);
    }
    stage.peak = stage.category_peak;
    stage.step_seconds = {123.4, 123.4};
  }
  check_width(compare_table(result, Style::ascii));
}

TEST_CASE("one bit in one hash is noticed, and the first place named", "[lab]") {
  CompareResult result = example();
  CHECK(judge(result).bit_identical);
  result.stages[2].param_hash[1] = 7;
  result.stages[3].loss[2] = std::nextafter(3.3125F, 4.0F);
  const Verdict verdict = judge(result);
  CHECK_FALSE(verdict.bit_identical);
  CHECK(verdict.max_ulp == 1);
  CHECK(contains(verdict.first_difference, "step 2: the parameter hash of stage 2"));
  const std::string text = compare_table(result, Style::ascii);
  CHECK(contains(text, "bit-identical: no\n"));
  CHECK(contains(text, "at most 1 ulp of fp32"));
}

TEST_CASE("a norm that differs is noticed, NaN equals NaN, 0 does not equal -0", "[lab]") {
  CompareResult result = example();
  for (StageResult& stage : result.stages) stage.grad_norm[0] = std::nan("");
  CHECK(judge(result).bit_identical);
  for (StageResult& stage : result.stages) stage.grad_norm[0] = 0;
  result.stages[1].grad_norm[0] = -0.0;
  CHECK(contains(judge(result).first_difference, "step 1: the gradient norm of stage 1"));
}

TEST_CASE("a held-out loss that differs is noticed too", "[lab]") {
  CompareResult result = example();
  result.stages[3].validation_loss[0] = std::nextafter(3.4375, 4.0);
  CHECK_FALSE(judge(result).bit_identical);
  CHECK(contains(judge(result).first_difference, "held-out loss of stage 3"));
}

TEST_CASE("with gradient accumulation a difference is said not to be promised away", "[lab]") {
  CompareResult result = example();
  result.gradient_accumulation_steps = 2;
  result.stages[2].loss[0] = 5.5468;
  CHECK_FALSE(judge(result).promised);
  CHECK(contains(compare_table(result, Style::ascii), "bit-identical: no, nor promised"));
}

}  // namespace
}  // namespace zerolab
