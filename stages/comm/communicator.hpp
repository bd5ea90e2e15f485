#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stages/base/dtype.hpp"
#include "stages/base/error.hpp"
#include "stages/base/types.hpp"

namespace zerolab {

enum class Op { all_gather, reduce_scatter, all_reduce, broadcast, barrier, control };
std::string_view name_of(Op op);

struct Send {
  int to = 0;
  std::span<const std::byte> data;
};
struct Receive {
  int from = 0;
  std::span<std::byte> data;
};

/// One round of a collective, as one rank sees it: what it sends to whom and what it expects from
/// whom. Between two ranks, the k-th send meets the k-th receive, and their lengths are equal.
/// Nobody sends to itself. Op, elements and owner travel along so that wrappers can check them.
struct Exchange {
  Op op = Op::barrier;
  Index elements = 0;
  Dtype dtype = Dtype::bytes;
  std::string owner;
  std::vector<Send> sends;
  std::vector<Receive> receives;
};

/// Thrown out of a wait because another rank announced that it cannot go on.
class PeerFailed : public Error {
 public:
  explicit PeerFailed(int failed_rank);
  int failed_rank() const { return failed_rank_; }

 private:
  int failed_rank_;
};

/// The seam to the other ranks. Everything collective is built from one function, `exchange`
/// (comm/collectives.hpp), so a transport, a slow link, a checker or a thousand simulated ranks are
/// one small class each. A rank's calls come from one thread at a time, in the same order on every
/// rank.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// For run.json: "threads", "mpi (MPICH 4.0.2, ch4:ucx)".
  virtual std::string description() const = 0;

  /// Returns when every send has been taken and every receive has arrived. Sleeps or yields while
  /// it waits, never spins. Throws PeerFailed, or Error (Code::communication), for instance when
  /// lengths differ. After a throw nobody touches the buffers any more, and no exchange succeeds.
  virtual void exchange(const Exchange& round) = 0;

  // --- when a rank cannot go on (design, section 6) ----------------------------------------------

  /// Tells all ranks that this one failed, and waits until each has acknowledged (or failed too),
  /// at most two seconds. True on exactly one rank, the one that should write the message: the
  /// lowest that failed, among those that failed before it made up its mind.
  virtual bool announce_failure() = 0;

  /// A peer failed and this rank has flushed its log. It will not write the message.
  virtual void acknowledge_failure() = 0;
};

/// Returns when every rank has called it.
void meet(Communicator& communicator, std::string why);

}  // namespace zerolab
