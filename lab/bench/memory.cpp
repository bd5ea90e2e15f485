#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "lab/bench/topics.hpp"
#include "lab/bench/trainer.hpp"
#include "stages/comm/local/local_world.hpp"
#include "stages/stages.hpp"

namespace zerolab::bench {
namespace {

struct Bytes {
  Index before = 0;   // resident before the model was built
  Index highest = 0;  // resident at most, in the whole life of the process
  Index ledger = 0;   // the ledger's peak
};

// A line of /proc/self/status such as "VmHWM:	  123456 kB".
Index status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != key + ":") continue;
    Index kib = 0;
    status >> kib;
    return kib * 1024;
  }
  return 0;
}

Bytes train_here(const std::string& model, int stage) {
  const Training training = training_of(model, 1, stage);
  LocalWorld world(1);
  Bytes bytes{.before = status_bytes("VmRSS")};
  Trainer trainer(world.rank(0), training);
  trainer.run(3);
  bytes.ledger = trainer.ledger().peak().total();
  bytes.highest = status_bytes("VmHWM");
  return bytes;
}

[[noreturn]] void fail(const std::string& what) {
  throw Error(Code::internal, fmt::format("the memory of a child process: {}", what), "");
}

// In a process of its own: what another training left in the heap would be counted, too.
Bytes measure(const std::string& model, int stage) {
  int ends[2];
  if (pipe(ends) != 0) fail("no pipe");
  const pid_t child = fork();
  if (child < 0) fail("no fork");
  if (child == 0) {
    const Bytes bytes = train_here(model, stage);
    const bool told = write(ends[1], &bytes, sizeof(bytes)) == sizeof(bytes);
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  Bytes bytes;
  const bool heard = read(ends[0], &bytes, sizeof(bytes)) == sizeof(bytes);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!heard || status != 0) fail("it ended early");
  return bytes;
}

}  // namespace

std::vector<Figure> memory(Effort effort) {
  std::vector<Figure> figures;
  for (int stage = 0; stage <= kHighestStage; ++stage) {
    const Bytes bytes = measure(effort.model("gpt-mini"), stage);
    const Index resident = bytes.highest - bytes.before;
    figures.push_back(
        {.what = fmt::format("stage {}: resident / ledger", stage),
         .value = fmt::format("{:.3f}",
                              static_cast<double>(resident) / static_cast<double>(bytes.ledger)),
         .note = fmt::format("{} resident over {} before the model, ledger {}, beyond it {}",
                             human_bytes(resident), human_bytes(bytes.before),
                             human_bytes(bytes.ledger), human_bytes(resident - bytes.ledger))});
  }
  return figures;
}

}  // namespace zerolab::bench
