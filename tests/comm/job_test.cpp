#include "stages/comm/job.hpp"

#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

/// Runs `body` on three threads and keeps what the job did.
struct Ran {
  int status = 0;
  int flushed = 0;
  std::vector<std::string> reports = {};
};

Ran run(const std::function<void(Communicator&)>& body) {
  Ran ran;
  std::mutex mutex;
  ran.status = run_threads(3, [&](int) {
    return RankProgram{.body = body,
                       .on_failure =
                           [&](const Communicator&) {
                             const std::lock_guard lock(mutex);
                             ++ran.flushed;
                           },
                       .report =
                           [&](const Communicator& communicator, const Error& error) {
                             const std::lock_guard lock(mutex);
                             ran.reports.push_back(std::to_string(communicator.rank()) + " " +
                                                   code_name(error.code()) + " after " +
                                                   std::to_string(ran.flushed) + " flushes");
                           }};
  });
  return ran;
}

TEST_CASE("a job whose ranks all return ends with 0 and says nothing", "[comm]") {
  std::atomic<int> bodies = 0;
  const Ran ran = run([&](Communicator&) { ++bodies; });
  CHECK(bodies == 3);
  CHECK(ran.status == 0);
  CHECK(ran.flushed == 0);
  CHECK(ran.reports.empty());
}

class Detailed : public Error {
 public:
  using Error::Error;
  nlohmann::ordered_json details() const override { return "more of it"; }
};

TEST_CASE("what is reported is the error itself, with its details", "[comm]") {
  nlohmann::ordered_json details;
  run_threads(3, [&](int) {
    return RankProgram{
        .body =
            [](Communicator& communicator) {
              if (communicator.rank() == 2) throw Detailed(Code::out_of_memory, "no memory", "");
            },
        .report = [&](const Communicator&, const Error& error) { details = error.details(); }};
  });
  CHECK(details == "more of it");
}

TEST_CASE("every rank flushes before the one message is written", "[comm]") {
  const Ran ran = run([](Communicator& communicator) {
    if (communicator.rank() == 1) throw Error(Code::out_of_memory, "no memory", "");
  });
  CHECK(ran.status == 3);
  CHECK(ran.reports == std::vector<std::string>{"1 ZL301 after 3 flushes"});
}

TEST_CASE("ranks that all fail alike write one message", "[comm]") {
  const Ran ran =
      run([](Communicator&) { throw Error(Code::parameter_not_available, "not there", ""); });
  CHECK(ran.status == 4);
  CHECK(ran.reports == std::vector<std::string>{"0 ZL401 after 3 flushes"});
}

TEST_CASE("what is not an Error of ours is an internal error", "[comm]") {
  const Ran ran = run([](Communicator& communicator) {
    if (communicator.rank() == 2) throw std::out_of_range("beyond");
  });
  CHECK(ran.status == 1);
  CHECK(ran.reports == std::vector<std::string>{"2 ZL101 after 3 flushes"});
}

}  // namespace
}  // namespace zerolab
