#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "lab/bench/topics.hpp"
#include "lab/table.hpp"
#include "stages/comm/collectives.hpp"
#include "stages/comm/mpi/mpi_communicator.hpp"
#include "stages/device/cpu/cpu_device.hpp"

namespace zerolab::bench {
namespace {

constexpr std::array kOperations{Op::all_gather, Op::reduce_scatter, Op::all_reduce};

// As MpiCommunicator waits: a few yields, then short sleeps.
void poll(MPI_Request request) {
  int polls = 0;
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    if (polls++ < 5) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

/// The first `ranks` ranks, each with a run of floats that is cut evenly among them.
class Group {
 public:
  Group(MPI_Comm communicator, int ranks, Index bytes)
      : communicator_(communicator),
        ours_(communicator),
        ledger_("device", recorder_),
        device_(ledger_),
        stream_(ours_, device_, ledger_, recorder_),
        ranks_(ranks),
        part_(bytes / size_of(Dtype::fp32) / ranks),
        run_(static_cast<std::size_t>(part_ * ranks), 1.0F),
        result_(run_.size()) {}

  void by_us(Op op) {
    Run run{run_.data(), {}};
    for (Index r = 0; r <= ranks_; ++r) run.bounds.push_back(r * part_);
    Pending pending;
    switch (op) {
      case Op::all_gather:
        pending = all_gather(stream_, {run}, "bench");
        break;
      case Op::reduce_scatter:
        pending = reduce_scatter(stream_, {run}, 0.5F, "bench");
        break;
      default:
        pending = all_reduce(stream_, {run}, 0.5F, "bench");
    }
    stream_.wait(pending);
  }

  void by_mpi(Op op) {
    const auto part = static_cast<int>(part_);
    const float* own = run_.data() + ours_.rank() * part_;
    MPI_Request request = MPI_REQUEST_NULL;
    switch (op) {
      case Op::all_gather:
        MPI_Iallgather(own, part, MPI_FLOAT, result_.data(), part, MPI_FLOAT, communicator_,
                       &request);
        break;
      case Op::reduce_scatter:
        MPI_Ireduce_scatter_block(run_.data(), result_.data(), part, MPI_FLOAT, MPI_SUM,
                                  communicator_, &request);
        break;
      default:
        MPI_Iallreduce(run_.data(), result_.data(), part * ranks_, MPI_FLOAT, MPI_SUM,
                       communicator_, &request);
    }
    poll(request);
  }

 private:
  MPI_Comm communicator_;
  MpiCommunicator ours_;
  Recorder recorder_{0};
  Ledger ledger_;
  CpuDevice device_;
  CommStream stream_;
  int ranks_;
  Index part_;
  std::vector<float> run_, result_;
};

struct Size {
  Index bytes;
  const char* name;
  int repeats;  // in one sample
};
constexpr std::array kSizes{Size{Index{4} << 10, "4 KiB", 50},
                            Size{Index{256} << 10, "256 KiB", 10},
                            Size{Index{8} << 20, "8 MiB", 1}};

Figure measure(Worlds& worlds, Group* group, int ranks, Op op, const Size& size, Effort effort) {
  const int repeats = effort.quick ? 1 : size.repeats;
  const auto work = [&](auto once) {
    const auto times = [group, once](int count) {
      if (group == nullptr) return;
      for (int i = 0; i < count; ++i) once(*group);
    };
    return Work{[times, repeats] { times(repeats); },
                [&worlds, times] {
                  worlds.meet();
                  times(1);
                }};
  };
  const auto seconds = interleave(effort.rounds(31), {work([op](Group& g) { g.by_us(op); }),
                                                      work([op](Group& g) { g.by_mpi(op); })});
  return ratio_figure(
      fmt::format("{} ranks, {} of {}", ranks, name_of(op), size.name),
      ratio_of(seconds[0], seconds[1]), std::nullopt,
      fmt::format("{}, MPI {}", human_seconds(spread_of(seconds[0]).median / repeats),
                  human_seconds(spread_of(seconds[1]).median / repeats)));
}

}  // namespace

std::vector<Figure> collectives(Worlds& worlds, Effort effort) {
  std::vector<Figure> figures;
  for (int ranks = 2; ranks <= worlds.size; ranks *= 2) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, worlds.rank < ranks ? 0 : MPI_UNDEFINED, worlds.rank, &part);
    for (const Size& size : kSizes) {
      std::unique_ptr<Group> group;
      if (part != MPI_COMM_NULL) group = std::make_unique<Group>(part, ranks, size.bytes);
      for (const Op op : kOperations) {
        figures.push_back(measure(worlds, group.get(), ranks, op, size, effort));
      }
    }
    if (part != MPI_COMM_NULL) MPI_Comm_free(&part);
    worlds.meet();
  }
  return figures;
}

}  // namespace zerolab::bench
