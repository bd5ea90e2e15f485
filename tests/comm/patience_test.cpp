#include "stages/comm/patience.hpp"

#include <algorithm>
#include <thread>

#include "stages/comm/job.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

using std::chrono::milliseconds;

struct Ran {
  int status = 0;
  std::string message;
};

Ran run(int ranks, const std::function<void(Communicator&)>& body, const Patience& patience) {
  Ran ran;
  const auto program = [&](int) {
    return RankProgram{.body = body, .report = [&](const Communicator&, const Error& error) {
                         ran.message += error.what();
                       }};
  };
  ran.status = run_threads(ranks, program, patience);
  return ran;
}

TEST_CASE("a wait that lasts too long ends the job and tells where every rank is", "[comm]") {
  const auto body = [](Communicator& communicator) {
    meet(communicator, "breakfast");
    if (communicator.rank() == 2) std::this_thread::sleep_for(milliseconds(600));
    meet(communicator, communicator.rank() == 1 ? "lunch" : "dinner");
  };
  // Ranks 0 and 1 meet each other's messages of another meal at once; with rank 2 alone missing it
  // is the watchdog that ends it.
  const auto late = [](Communicator& communicator) {
    meet(communicator, "breakfast");
    if (communicator.rank() == 2) std::this_thread::sleep_for(milliseconds(600));
    meet(communicator, "dinner");
  };
  const Patience patience{.timeout = milliseconds(200)};
  const Ran apart = run(3, body, patience);
  CHECK(apart.status == 7);
  CHECK(contains(apart.message, "ZL706"));
  CHECK(contains(apart.message, "rank 0 waits in barrier of 'dinner'"));
  CHECK(contains(apart.message, "rank 1 waits in barrier of 'lunch'"));
  CHECK(contains(apart.message, "rank 2 comes too late to barrier of 'dinner'"));

  const Ran missing = run(3, late, patience);
  CHECK(missing.status == 7);
  CHECK(contains(missing.message, "ZL705"));
  CHECK(contains(missing.message, "has not ended in 0.2 s"));
  CHECK(contains(missing.message, "rank 0 waits in barrier of 'dinner'"));
  CHECK(contains(missing.message, "rank 2 comes too late to barrier of 'dinner'"));
}

TEST_CASE("a patience of 0 waits as long as it takes", "[comm]") {
  const auto body = [](Communicator& communicator) {
    if (communicator.rank() == 1) std::this_thread::sleep_for(milliseconds(300));
    meet(communicator, "dinner");
  };
  CHECK(run(2, body, {}).status == 0);
}

TEST_CASE("who looks around may end an exchange before it begins and while it waits", "[comm]") {
  for (const bool waits : {false, true}) {
    std::atomic<bool> enough = !waits;
    const Patience patience{.look_around = [&](const Signature& signature) {
      if (enough) throw Error(Code::interrupted, "enough of " + signature.owner, "");
    }};
    const auto body = [&](Communicator& communicator) {
      if (communicator.rank() == 1) {
        std::this_thread::sleep_for(milliseconds(200));
        enough = true;
        std::this_thread::sleep_for(milliseconds(200));
      }
      meet(communicator, "dinner");
    };
    const Ran ran = run(2, body, patience);
    CHECK(ran.status == 130);
    CHECK(ran.message == "ZL13001: enough of dinner");
  }
}

}  // namespace
}  // namespace zerolab
