#include "stages/engine/losses.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace zerolab {

void Losses::count(const std::vector<std::int32_t>& targets) {
  counts_.all += static_cast<Index>(targets.size());
  counts_.counting += std::count_if(targets.begin(), targets.end(),
                                    [](std::int32_t target) { return target >= 0; });
}

std::vector<std::byte> Losses::message() const {
  std::vector<std::byte> bytes(sizeof(counts_) + of_passes_.size() * sizeof(double));
  std::memcpy(bytes.data(), &counts_, sizeof(counts_));
  std::memcpy(bytes.data() + sizeof(counts_), of_passes_.data(),
              of_passes_.size() * sizeof(double));
  return bytes;
}

MeanLoss::MeanLoss(const std::vector<std::vector<std::byte>>& messages, std::size_t offset) {
  Losses::Counts counts;
  for (const std::vector<std::byte>& message : messages) {
    Losses::Counts of_rank;
    std::memcpy(&of_rank, message.data() + offset, sizeof(of_rank));
    counts.all += of_rank.all;
    counts.counting += of_rank.counting;
  }
  if (counts.counting > 0) {
    correction = static_cast<double>(counts.all) / static_cast<double>(counts.counting);
  }
  const std::size_t first = offset + sizeof(counts);
  const std::size_t passes = (messages.front().size() - first) / sizeof(double);
  double sum = 0;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    for (std::size_t rank = 0; rank < messages.size(); ++rank) {
      double loss = 0;
      std::memcpy(&loss, messages[rank].data() + first + pass * sizeof(loss), sizeof(loss));
      sum += loss;
      if (!std::isfinite(loss)) not_finite.insert(static_cast<int>(rank));
    }
  }
  value = sum / static_cast<double>(messages.size() * passes) * correction;
}

}  // namespace zerolab
