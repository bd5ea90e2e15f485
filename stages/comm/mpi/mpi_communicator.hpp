#pragma once

#include <mpi.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stages/comm/communicator.hpp"
#include "stages/comm/patience.hpp"

namespace zerolab {

/// Ranks that are MPI processes. Only non-blocking calls, polled: blocking ones spin, and where
/// ranks outnumber cores that keeps the peer they wait for from running.
///
/// The communication worker and the compute thread both call MPI (data, and failures), one at a
/// time under a lock: MPI_THREAD_SERIALIZED is enough, and cheaper than MULTIPLE.
class MpiCommunicator final : public Communicator {
 public:
  /// Collective over `world`. Messages longer than `largest_message` bytes travel in pieces, since
  /// MPI counts with int.
  explicit MpiCommunicator(MPI_Comm world, Patience patience = {},
                           Index largest_message = Index{1} << 30);
  /// Collective, unless a failure was announced.
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string description() const override;
  void exchange(const Exchange& round) override;
  bool announce_failure() override;
  void acknowledge_failure() override;
  std::vector<std::string> whereabouts() const override;

 private:
  enum class Notice : char { failed, out };
  struct Peer {
    bool failed = false;
    bool out = false;   // will not write the message
    std::string where;  // empty until it is known
  };

  struct Requests;
  void start(const Exchange& round, Requests& requests);
  bool done(Requests& requests);
  void abandon(Requests& requests);
  void tell_everybody(Notice notice);
  void listen();
  void stop_if_a_peer_failed();
  std::optional<int> lowest_failed() const;

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }

  mutable std::mutex mutex_;  // around every MPI call, and peers_
  MPI_Comm data_ = MPI_COMM_NULL;
  MPI_Comm control_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  Patience patience_;
  Signature latest_;
  std::string_view how_ = "is at";  // related to latest_
  Index largest_message_;
  std::vector<Peer> peers_;  // this rank is one of them
  std::string notice_;       // must stay while it is being sent
};

}  // namespace zerolab
