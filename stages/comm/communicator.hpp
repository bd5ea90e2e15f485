#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stages/base/error.hpp"
#include "stages/comm/signature.hpp"

namespace zerolab {

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
/// Nobody sends to itself.
struct Exchange {
  Signature signature = {};  // of the collective
  Index round = 0;           // of the collective, from 0
  std::uint64_t label = 0;   // only messages of the same label meet: the signature's fingerprint
  std::vector<Send> sends = {};
  std::vector<Receive> receives = {};
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
  /// it waits, never spins. Throws PeerFailed; Error (Code::communication), for instance when
  /// lengths differ; Error (Code::collective_mismatch) if it sees that labels differ, otherwise it
  /// waits in vain; what its Patience throws. After a throw nobody touches the buffers any more,
  /// and no exchange succeeds.
  virtual void exchange(const Exchange& round) = 0;

  /// Bytes that this rank has sent in exchanges beside what they carry (a checker's questions).
  virtual Index extra_bytes_sent() const { return 0; }

  // --- when a rank cannot go on (design, section 6) ----------------------------------------------

  /// Tells all ranks that this one failed, and waits until each has acknowledged (or failed too),
  /// at most two seconds. True on exactly one rank, the one that should write the message: the
  /// lowest that failed, among those that failed before it made up its mind.
  virtual bool announce_failure() = 0;

  /// A peer failed and this rank has flushed its log. It will not write the message.
  virtual void acknowledge_failure() = 0;

  /// Where each rank was when it failed or heard of the failure, "waits in all_gather 17 of ...";
  /// empty for one that has not answered. For the rank that writes the message.
  virtual std::vector<std::string> whereabouts() const = 0;
};

/// The round in which every rank sends `mine` to all others, and rank r's arrives in all[r] (the
/// own entry is left alone). An empty `all` expects empty messages.
Exchange everybody_to_everybody(int rank, int size, std::span<const std::byte> mine,
                                const std::vector<std::span<std::byte>>& all = {});

/// The error of ranks that are at different collectives; `noticed` says how that showed.
Error collective_mismatch(std::string_view noticed);

/// Returns when every rank has called it.
void meet(Communicator& communicator, std::string why);

}  // namespace zerolab
