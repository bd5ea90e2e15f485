#include "stages/comm/mpi/mpi_communicator.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <thread>

namespace zerolab {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kNoticeTag = 0;
constexpr std::uint64_t kHighestTag = 32767;  // that every MPI has
constexpr std::chrono::seconds kPatience{2};
constexpr milliseconds kGrace{50};  // for what is on its way when a peer fails

void check(int result) {
  if (result == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  throw Error(Code::communication, fmt::format("MPI: {}", text.data()),
              "every rank must call the same collectives with the same sizes");
}

/// How long to leave the core to others between two polls: first only a yield, since the peer may
/// be next in line on this core; after a while a sleep.
class Pause {
 public:
  void operator()() {
    if (polls_ < kYields) {
      ++polls_;
      sched_yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
  }

 private:
  static constexpr int kYields = 5;
  static constexpr microseconds kSleep{20};
  int polls_ = 0;
};

}  // namespace

struct MpiCommunicator::Requests {
  std::vector<MPI_Request> open;  // receives first
  std::vector<int> expected;      // bytes of each receive

  bool done() {
    std::vector<MPI_Status> statuses(open.size());
    int all = 0;
    const int result =
        MPI_Testall(static_cast<int>(open.size()), open.data(), &all, statuses.data());
    if (result == MPI_ERR_IN_STATUS) {
      for (const MPI_Status& status : statuses) {
        if (status.MPI_ERROR != MPI_ERR_PENDING) check(status.MPI_ERROR);
      }
    }
    check(result);
    if (all == 0) return false;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      int bytes = 0;
      check(MPI_Get_count(&statuses[i], MPI_BYTE, &bytes));
      if (bytes != expected[i]) {
        throw Error(Code::communication,
                    fmt::format("a message from rank {} has {} bytes, {} are expected",
                                statuses[i].MPI_SOURCE, bytes, expected[i]),
                    "every rank must call the same collectives with the same sizes");
      }
    }
    return true;
  }
};

MpiCommunicator::MpiCommunicator(MPI_Comm world, Patience patience, Index largest_message)
    : patience_(std::move(patience)), largest_message_(largest_message) {
  check(MPI_Comm_dup(world, &data_));
  check(MPI_Comm_dup(world, &control_));
  check(MPI_Comm_set_errhandler(data_, MPI_ERRORS_RETURN));
  check(MPI_Comm_rank(data_, &rank_));
  check(MPI_Comm_size(data_, &size_));
  peers_.resize(static_cast<std::size_t>(size_));
}

MpiCommunicator::~MpiCommunicator() {
  if (lowest_failed()) return;  // peers may be gone, and messages still on their way
  MPI_Comm_free(&control_);
  MPI_Comm_free(&data_);
}

std::string MpiCommunicator::description() const {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view version(text.data());
  // "MPICH Version:      4.0.2" in the first of several lines
  std::istringstream words(std::string(version.substr(0, version.find('\n'))));
  std::string name;
  for (std::string word; words >> word;) {
    if (word != "Version:") name += (name.empty() ? "" : " ") + word;
  }
  return fmt::format("mpi ({})", name);
}

void MpiCommunicator::exchange(const Exchange& round) {
  const Wait wait(patience_, round.signature);
  Requests requests;
  try {
    wait.check();
    start(round, requests);
    for (Pause pause; !done(requests);) {
      pause();
      wait.check();
    }
  } catch (...) {
    abandon(requests);
    throw;
  }
}

void MpiCommunicator::start(const Exchange& round, Requests& requests) {
  const std::lock_guard lock(mutex_);
  latest_ = round.signature;
  how_ = "comes too late to";
  stop_if_a_peer_failed();
  how_ = "waits in";
  const auto tag = static_cast<int>(round.label & kHighestTag);
  const auto in_pieces = [this](auto data, const auto& post) {
    do {
      const auto piece =
          data.first(std::min(data.size(), static_cast<std::size_t>(largest_message_)));
      post(piece);
      data = data.subspan(piece.size());
    } while (!data.empty());
  };
  for (const Receive& receive : round.receives) {
    in_pieces(receive.data, [&](std::span<std::byte> piece) {
      const auto bytes = static_cast<int>(piece.size());
      requests.expected.push_back(bytes);
      check(MPI_Irecv(piece.data(), bytes, MPI_BYTE, receive.from, tag, data_,
                      &requests.open.emplace_back(MPI_REQUEST_NULL)));
    });
  }
  for (const Send& send : round.sends) {
    in_pieces(send.data, [&](std::span<const std::byte> piece) {
      check(MPI_Isend(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, send.to, tag, data_,
                      &requests.open.emplace_back(MPI_REQUEST_NULL)));
    });
  }
}

bool MpiCommunicator::done(Requests& requests) {
  const std::lock_guard lock(mutex_);
  if (requests.done()) {
    how_ = "is at";
    return true;
  }
  stop_if_a_peer_failed();
  return false;
}

void MpiCommunicator::stop_if_a_peer_failed() {
  listen();
  if (const auto failed = lowest_failed()) throw PeerFailed(*failed);
}

// The buffers are about to go away. A message that is half-way through must not meet freed memory
// (its reader would crash, and mpirun would report that crash), so those get a moment to finish;
// receives that met no send are taken back. Peers that come later look for failures first.
void MpiCommunicator::abandon(Requests& requests) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < requests.expected.size(); ++i) {
    if (requests.open[i] != MPI_REQUEST_NULL) MPI_Cancel(&requests.open[i]);
  }
  const Clock::time_point deadline = Clock::now() + kGrace;
  int all = 0;
  while (all == 0 && Clock::now() < deadline) {
    MPI_Testall(static_cast<int>(requests.open.size()), requests.open.data(), &all,
                MPI_STATUSES_IGNORE);
    std::this_thread::sleep_for(microseconds(100));
  }
}

bool MpiCommunicator::announce_failure() {
  const std::lock_guard lock(mutex_);
  Peer& me = peer(rank_);
  me.failed = me.out = true;
  tell_everybody(Notice::failed);
  // A peer that decided to write the message never says that it is out, so a rank that fails in
  // that moment waits here until the job is ended: the message is written once.
  const Clock::time_point deadline = Clock::now() + kPatience;
  const auto everybody_out = [this] {
    return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.out; });
  };
  do {
    listen();
    if (*lowest_failed() < rank_) {
      tell_everybody(Notice::out);
      return false;
    }
    if (everybody_out()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  } while (Clock::now() < deadline);
  return true;
}

void MpiCommunicator::acknowledge_failure() {
  const std::lock_guard lock(mutex_);
  tell_everybody(Notice::out);
}

std::vector<std::string> MpiCommunicator::whereabouts() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> result;
  for (const Peer& peer : peers_) result.push_back(peer.where);
  return result;
}

void MpiCommunicator::tell_everybody(Notice notice) {
  std::string& where = peer(rank_).where;
  where = fmt::format("{} {}", how_, describe(latest_));
  notice_ = static_cast<char>(notice) + where;
  std::vector<MPI_Request> sends;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    MPI_Isend(notice_.data(), static_cast<int>(notice_.size()), MPI_CHAR, other, kNoticeTag,
              control_, &sends.emplace_back(MPI_REQUEST_NULL));
  }
  const Clock::time_point deadline = Clock::now() + kPatience;
  int all = 0;
  while (all == 0 && Clock::now() < deadline) {
    MPI_Testall(static_cast<int>(sends.size()), sends.data(), &all, MPI_STATUSES_IGNORE);
    if (all == 0) std::this_thread::sleep_for(microseconds(100));
  }
}

void MpiCommunicator::listen() {
  for (;;) {
    int waiting = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kNoticeTag, control_, &waiting, &status);
    if (waiting == 0) return;
    int length = 0;
    MPI_Get_count(&status, MPI_CHAR, &length);
    std::string notice(static_cast<std::size_t>(length), ' ');
    MPI_Recv(notice.data(), length, MPI_CHAR, status.MPI_SOURCE, kNoticeTag, control_,
             MPI_STATUS_IGNORE);
    Peer& sender = peer(status.MPI_SOURCE);
    (notice.front() == static_cast<char>(Notice::failed) ? sender.failed : sender.out) = true;
    sender.where = notice.substr(1);
  }
}

std::optional<int> MpiCommunicator::lowest_failed() const {
  const auto first =
      std::find_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.failed; });
  if (first == peers_.end()) return std::nullopt;
  return static_cast<int>(first - peers_.begin());
}

}  // namespace zerolab
