#include "stages/comm/patience.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/run_job.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab::test {
namespace {

using std::chrono::milliseconds;

/// Three ranks have breakfast together. Rank 2 comes to dinner when the others have given up, and
/// rank 1 goes to a meal of its own.
JobEnd meals(const std::string& meal_of_rank_1) {
  const auto body = [&](Communicator& communicator) {
    meet(communicator, "breakfast");
    if (communicator.rank() == 2) std::this_thread::sleep_for(milliseconds(600));
    meet(communicator, communicator.rank() == 1 ? meal_of_rank_1 : "dinner");
  };
  return run_job(3, body, {.timeout = milliseconds(200)});
}

TEST_CASE("a wait that lasts too long ends the job and tells where every rank is", "[comm]") {
  const JobEnd end = meals("dinner");
  CHECK(end.status == 7);
  CHECK(contains(end.message, "ZL705"));
  CHECK(contains(end.message, "has not ended in 0.2 s"));
  CHECK(contains(end.message, "rank 0 waits in barrier of 'dinner'"));
  CHECK(contains(end.message, "rank 1 waits in barrier of 'dinner'"));
  CHECK(contains(end.message, "rank 2 comes too late to barrier of 'dinner'"));
}

TEST_CASE("ranks that are at different collectives are told so before their patience ends",
          "[comm]") {
  const JobEnd end = meals("lunch");
  CHECK(end.status == 7);
  CHECK(contains(end.message, "ZL706"));
  CHECK(contains(end.message, "rank 0 waits in barrier of 'dinner'"));
  CHECK(contains(end.message, "rank 1 waits in barrier of 'lunch'"));
  CHECK(contains(end.message, "rank 2 comes too late to barrier of 'dinner'"));
}

TEST_CASE("a patience of 0 waits as long as it takes", "[comm]") {
  const auto body = [](Communicator& communicator) {
    if (communicator.rank() == 1) std::this_thread::sleep_for(milliseconds(300));
    meet(communicator, "dinner");
  };
  CHECK(run_job(2, body).status == 0);
}

TEST_CASE("who looks around may end an exchange before it begins and while it waits", "[comm]") {
  for (const bool waits : {false, true}) {
    std::atomic<bool> enough = !waits;
    std::atomic<bool> thrown = false;
    std::atomic<int> looks = 0;
    const Patience patience{.look_around = [&](const Signature& signature) {
      ++looks;
      if (!enough) return;
      thrown = true;
      throw Error(Code::interrupted, "enough of " + signature.owner, "");
    }};
    // Not std::atomic's own wait: with libstdc++ 12 it sometimes does not end.
    const auto until = [](const auto& holds) {
      while (!holds()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    const auto body = [&](Communicator& communicator) {
      if (communicator.rank() == 1) {
        // Rank 0 has looked as it came, and again while it waits; then it is told.
        if (waits) until([&] { return looks >= 2; });
        enough = true;
        until([&] { return thrown.load(); });
      }
      meet(communicator, "dinner");
    };
    const JobEnd end = run_job(2, body, patience);
    CHECK(end.status == 130);
    CHECK(end.message == "ZL13001: enough of dinner");
  }
}

}  // namespace
}  // namespace zerolab::test
