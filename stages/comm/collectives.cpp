#include "stages/comm/collectives.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace zerolab {
namespace {

struct Piece {
  Values data;
  Index elements = 0;
};
using Pieces = std::vector<Piece>;  // in the order of the runs, none empty

std::size_t size(Index count) { return static_cast<std::size_t>(count); }

Index total_elements(const std::vector<Run>& runs) {
  Index sum = 0;
  for (const Run& run : runs) sum += run.elements();
  return sum;
}

Index part_elements(const std::vector<Run>& runs, int owner) {
  Index sum = 0;
  for (const Run& run : runs) {
    sum += run.bounds[size(owner) + 1] - run.bounds[size(owner)];
  }
  return sum;
}

/// Elements [first, last) of `owner`'s part, when its pieces of all runs are laid end to end.
Pieces pieces_of(const std::vector<Run>& runs, int owner, Index first, Index last) {
  Pieces pieces;
  Index position = 0;
  for (const Run& run : runs) {
    const Index begin = run.bounds[size(owner)];
    const Index length = run.bounds[size(owner) + 1] - begin;
    const Index from = std::max(first - position, Index{0});
    const Index to = std::min(last - position, length);
    if (from < to) pieces.push_back({run.data + (begin + from), to - from});
    position += length;
  }
  return pieces;
}

Pieces part_of(const std::vector<Run>& runs, int owner) {
  return pieces_of(runs, owner, 0, part_elements(runs, owner));
}

void send(Exchange& exchange, int to, const Pieces& pieces) {
  for (const Piece& piece : pieces)
    exchange.sends.push_back({to, bytes_of(piece.data, piece.elements)});
}

void receive(Exchange& exchange, int from, const Pieces& pieces) {
  for (const Piece& piece : pieces) {
    exchange.receives.push_back({from, bytes_of(piece.data, piece.elements)});
  }
}

/// The other ranks, the next one first, so that not everybody turns to rank 0 at once.
std::vector<int> peers(const CommStream& stream) {
  std::vector<int> result;
  for (int step = 1; step < stream.size(); ++step) {
    result.push_back((stream.rank() + step) % stream.size());
  }
  return result;
}

CommStream::Round gather_round(const CommStream& stream, const std::vector<Run>& runs) {
  CommStream::Round round;
  for (const int peer : peers(stream)) {
    send(round.exchange, peer, part_of(runs, stream.rank()));
    receive(round.exchange, peer, part_of(runs, peer));
  }
  return round;
}

Index chunk_of(Index all, int ranks) { return std::max(Index{1}, all / std::max(1, ranks - 1)); }

/// How a reduction is cut into rounds: in each, `chunk` elements of every rank's part travel from
/// all its peers to it. What a rank receives in one round is then at most as much as the runs hold;
/// when the parts are equal, one round does it.
struct Rounds {
  Index chunk;
  Index count = 0;

  Rounds(const std::vector<Run>& runs, int ranks) : chunk(chunk_of(total_elements(runs), ranks)) {
    for (int owner = 0; owner < ranks; ++owner) {
      count = std::max(count, ceil_div(part_elements(runs, owner), chunk));
    }
  }
};

/// Round `index` of a reduction. The receive buffer has a slot of `slot` elements for every peer;
/// what arrives there is added to the own pieces in the order of the ranks.
CommStream::Round reduce_round(const CommStream& stream, const std::vector<Run>& runs,
                               const Rounds& rounds, Index index, float factor, Values buffer,
                               Index slot) {
  const Index first = index * rounds.chunk;
  const Index last = first + rounds.chunk;
  const Pieces own = pieces_of(runs, stream.rank(), first, last);
  std::vector<std::vector<ConstValues>> parts(own.size());  // [piece][rank]
  for (std::size_t i = 0; i < own.size(); ++i) {
    parts[i].assign(size(stream.size()), own[i].data);
  }

  CommStream::Round round;
  for (const int peer : peers(stream)) {
    send(round.exchange, peer, pieces_of(runs, peer, first, last));
    Pieces arriving;
    Values place = buffer + slot * (peer < stream.rank() ? peer : peer - 1);
    for (std::size_t i = 0; i < own.size(); ++i) {
      arriving.push_back({place, own[i].elements});
      parts[i][size(peer)] = place;
      place = place + own[i].elements;
    }
    receive(round.exchange, peer, arriving);
  }
  round.then = [own, parts = std::move(parts), factor](Device& device) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      device.ordered_sum(parts[i], own[i].elements, factor, own[i].data);
    }
  };
  return round;
}

void add_reduction(CommStream::Operation& operation, CommStream& stream,
                   const std::vector<Run>& runs, float factor, const Governor* governor) {
  const Rounds rounds(runs, stream.size());
  const Index own = part_elements(runs, stream.rank());
  const Index slot = std::min(rounds.chunk, own);
  const Dtype dtype = operation.signature.dtype;
  const Index bytes =
      receive_elements(operation.signature.elements, own, stream.size()) * size_of(dtype);
  Values buffer;
  if (bytes > 0) {
    operation.buffers.push_back(stream.ledger().allocate(bytes, Category::reduce_buffers,
                                                         operation.signature.owner, governor));
    buffer = operation.buffers.back().values(dtype);
  }
  for (Index index = 0; index < rounds.count; ++index) {
    operation.rounds.push_back(reduce_round(stream, runs, rounds, index, factor, buffer, slot));
  }
}

CommStream::Operation over_runs(Op op, [[maybe_unused]] const CommStream& stream,
                                const std::vector<Run>& runs, std::string owner) {
  for ([[maybe_unused]] const Run& run : runs) {
    assert(size(stream.size()) + 1 == run.bounds.size() && run.bounds.front() == 0 &&
           std::is_sorted(run.bounds.begin(), run.bounds.end()) &&
           run.data.dtype() == runs.front().data.dtype());
  }
  return {{.op = op,
           .elements = total_elements(runs),
           .dtype = runs.empty() ? Dtype::fp32 : runs.front().data.dtype(),
           .owner = std::move(owner)}};
}

CommStream::Operation over_bytes(Op op, std::size_t bytes, std::string owner,
                                 CommStream::Round round) {
  CommStream::Operation operation{{.op = op,
                                   .elements = static_cast<Index>(bytes),
                                   .dtype = Dtype::bytes,
                                   .owner = std::move(owner)}};
  operation.rounds.push_back(std::move(round));
  return operation;
}

}  // namespace

Pending all_gather(CommStream& stream, const std::vector<Run>& runs, std::string owner) {
  auto operation = over_runs(Op::all_gather, stream, runs, std::move(owner));
  if (operation.signature.elements == 0) return {};
  operation.rounds.push_back(gather_round(stream, runs));
  return stream.enqueue(std::move(operation));
}

Index receive_elements(Index all, Index own, int ranks) {
  return std::min(chunk_of(all, ranks), own) * (ranks - 1);
}

Pending reduce_scatter(CommStream& stream, const std::vector<Run>& runs, float factor,
                       std::string owner, const Governor* governor) {
  auto operation = over_runs(Op::reduce_scatter, stream, runs, std::move(owner));
  if (operation.signature.elements == 0) return {};
  add_reduction(operation, stream, runs, factor, governor);
  return stream.enqueue(std::move(operation));
}

Pending all_reduce(CommStream& stream, const std::vector<Run>& runs, float factor,
                   std::string owner, const Governor* governor) {
  auto operation = over_runs(Op::all_reduce, stream, runs, std::move(owner));
  if (operation.signature.elements == 0) return {};
  add_reduction(operation, stream, runs, factor, governor);
  operation.rounds.push_back(gather_round(stream, runs));
  return stream.enqueue(std::move(operation));
}

Pending gather(CommStream& stream, Values mine, const Run& run, int root, std::string owner) {
  CommStream::Operation operation{{.op = Op::gather,
                                   .elements = run.elements(),
                                   .dtype = mine.dtype(),
                                   .owner = std::move(owner)}};
  if (operation.signature.elements == 0) return {};
  CommStream::Round round;
  if (stream.rank() == root) {
    for (const int peer : peers(stream)) receive(round.exchange, peer, part_of({run}, peer));
  } else if (const Index own = part_elements({run}, stream.rank()); own > 0) {
    send(round.exchange, root, {{mine, own}});
  }
  operation.rounds.push_back(std::move(round));
  return stream.enqueue(std::move(operation));
}

Pending broadcast(CommStream& stream, std::span<std::byte> data, int root, std::string owner) {
  if (data.empty()) return {};
  CommStream::Round round;
  if (stream.rank() == root) {
    for (const int peer : peers(stream)) round.exchange.sends.push_back({peer, data});
  } else {
    round.exchange.receives.push_back({root, data});
  }
  return stream.enqueue(over_bytes(Op::broadcast, data.size(), std::move(owner), std::move(round)));
}

void barrier(CommStream& stream, std::string owner) {
  Pending pending =
      stream.enqueue(over_bytes(Op::barrier, 0, std::move(owner),
                                {everybody_to_everybody(stream.rank(), stream.size(), {})}));
  stream.wait(pending);
}

std::vector<std::vector<std::byte>> share(CommStream& stream, std::span<const std::byte> mine,
                                          std::string owner) {
  std::vector<std::vector<std::byte>> all(size(stream.size()), {mine.begin(), mine.end()});
  if (mine.empty()) return all;
  const std::vector<std::span<std::byte>> arriving(all.begin(), all.end());
  Pending pending = stream.enqueue(
      over_bytes(Op::control, mine.size(), std::move(owner),
                 {everybody_to_everybody(stream.rank(), stream.size(), mine, arriving)}));
  stream.wait(pending);
  return all;
}

}  // namespace zerolab
