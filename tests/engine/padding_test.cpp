// Padding is zero when it is sent, in every step: freed memory is NaN in the builds that run this,
// so padding that nobody zeroed shows.

#include <algorithm>
#include <cstring>
#include <map>

#include "tests/support/catch.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/trainings.hpp"
#include "tests/support/watching_communicator.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr int kRanks = 4;

/// What one rank sent to one other in one round.
struct Sent {
  Op op = Op::barrier;
  std::string owner;
  int from = 0, to = 0;
  std::vector<std::vector<std::uint32_t>> pieces;  // bits
};

/// Trains the odd sizes, one gradient a bucket, and returns everything that was sent, by rank in
/// order.
std::vector<Sent> everything_sent(int stage) {
  Training training = training_of_odd_sizes(stage);
  training.settings.zero.reduce_bucket_size = 1;
  const auto by_rank = run_ranks(kRanks, [&](Communicator& inner) {
    std::vector<Sent> all;
    WatchingCommunicator communicator(inner, [&](const Exchange& round) {
      std::map<int, Sent> by_peer;
      for (const Send& send : round.sends) {
        if (round.signature.dtype != Dtype::fp32) continue;
        Sent& sent = by_peer[send.to];
        sent = {round.signature.op, round.signature.owner, inner.rank(), send.to,
                std::move(sent.pieces)};
        std::vector<std::uint32_t> piece(send.data.size() / sizeof(float));
        std::memcpy(piece.data(), send.data.data(), send.data.size());
        sent.pieces.push_back(std::move(piece));
      }
      for (auto& [peer, sent] : by_peer) all.push_back(std::move(sent));
    });
    Recorder recorder(inner.rank());
    train(communicator, recorder, training);
    return all;
  });
  std::vector<Sent> all;
  for (const std::vector<Sent>& of_rank : by_rank)
    all.insert(all.end(), of_rank.begin(), of_rank.end());
  return all;
}

// In the flat layout the odd sizes are 119 elements and one of padding, which lies behind
// head.bias and belongs to the last rank.
constexpr std::size_t kSlice = 120 / kRanks;
constexpr std::size_t kHeadBias = 11;

/// Numbers sent from one rank to another for the reduction of head.bias, round after round, ending
/// a reduction when all of the last rank's part has come.
int zero_endings(const std::vector<Sent>& all, Op op, std::size_t part) {
  int endings = 0;
  for (int from = 0; from + 1 < kRanks; ++from) {
    std::size_t arrived = 0;
    for (const Sent& sent : all) {
      if (sent.op != op || sent.owner != "head.bias" || sent.from != from ||
          sent.to != kRanks - 1) {
        continue;
      }
      REQUIRE(sent.pieces.size() == 1);
      arrived += sent.pieces[0].size();
      if (arrived % part == 0 && sent.pieces[0].back() == 0) ++endings;
    }
  }
  return endings;
}

// In the piece layout every parameter has its own: these are read by these modules.
const std::map<std::string, std::vector<Index>> kRead{
    {"embedding.weight", {33}},
    {"norm.weight .. norm.bias (2 parameters)", {3, 3}},
    {"narrow.weight .. narrow.bias (2 parameters)", {3, 1}},
    {"widen.weight .. widen.bias (2 parameters)", {5, 5}},
    {"head.weight .. head.bias (2 parameters)", {55, 11}}};
const std::map<std::string, std::vector<Index>> kReduced{
    {"embedding.weight", {33}}, {"norm.weight", {3}},  {"norm.bias", {3}},
    {"narrow.weight", {3}},     {"narrow.bias", {1}},  {"widen.weight", {5}},
    {"widen.bias", {5}},        {"head.weight", {55}}, {"head.bias", {11}}};

/// Checks pieces that belong to `rank`; returns how many elements of padding it saw.
Index check_pieces(const Sent& sent, const std::vector<Index>& sizes, int rank) {
  INFO(sent.owner << " from " << sent.from << " to " << sent.to);
  REQUIRE(sent.pieces.size() == sizes.size());
  Index padding = 0;
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    const Index length = (sizes[p] + kRanks - 1) / kRanks;
    REQUIRE(static_cast<Index>(sent.pieces[p].size()) == length);
    for (Index i = 0; i < length; ++i) {
      if (rank * length + i < sizes[p]) continue;
      CHECK(sent.pieces[p][static_cast<std::size_t>(i)] == 0);
      ++padding;
    }
  }
  return padding;
}

}  // namespace

TEST_CASE("stages 1 and 2 publish a last slice whose padding is zero, in each of ten steps") {
  for (const int stage : {1, 2}) {
    int publications = 0;
    for (const Sent& sent : everything_sent(stage)) {
      if (sent.op != Op::all_gather || sent.from != kRanks - 1) continue;
      REQUIRE(sent.pieces.size() == 1);
      REQUIRE(sent.pieces[0].size() == kSlice);
      CHECK(sent.pieces[0][kSlice - 1] == 0);
      CHECK(sent.pieces[0][kSlice - 2] != 0);  // the last element of head.bias
      ++publications;
    }
    CHECK(publications == 10 * (kRanks - 1));
  }
}

TEST_CASE("stages 1 and 2 reduce a last gradient whose padding is zero, in each of ten steps") {
  for (const int stage : {1, 2}) {
    INFO("stage " << stage);
    // all of head.bias lies in the last rank's slice
    const auto all = everything_sent(stage);
    CHECK(zero_endings(all, Op::reduce_scatter, kHeadBias + 1) == 10 * (kRanks - 1));
  }
}

TEST_CASE("stage 0 reduces and hands on a last gradient whose padding is zero, in ten steps") {
  // a quarter of it is summed by each rank, and the sum goes back: two rounds of three elements
  int handed_on = 0;
  const auto all = everything_sent(0);
  for (const Sent& sent : all) {
    if (sent.owner != "head.bias" || sent.from != kRanks - 1) continue;
    if (sent.pieces[0].back() == 0) ++handed_on;
  }
  CHECK(handed_on == 10 * (kRanks - 1));
  CHECK(zero_endings(all, Op::all_reduce, 3) == 10 * (kRanks - 1));
}

TEST_CASE("stage 3 gathers and reduces pieces whose padding is zero, in each of ten steps") {
  Index gathered = 0;
  Index reduced = 0;
  for (const Sent& sent : everything_sent(3)) {
    if (sent.op == Op::all_gather) {
      gathered += check_pieces(sent, kRead.at(sent.owner), sent.from);
    } else if (sent.op == Op::reduce_scatter) {
      reduced += check_pieces(sent, kReduced.at(sent.owner), sent.to);
    }
  }
  // elements of padding: 3 for 33, 1 for 3, 3 for 1, 3 for 5, 1 for 55, 1 for 11; every rank sends
  // its own to three others, twice a step
  const Index padding = 3 + 3 * 1 + 3 + 2 * 3 + 1 + 1;
  CHECK(gathered == 10 * 2 * padding * (kRanks - 1));
  CHECK(reduced == 10 * padding * (kRanks - 1));
}
