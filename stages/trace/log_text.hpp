#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

namespace zerolab {

/// Text that grows at its end. A line of the log is put together from fifty small pieces, so adding
/// one has to be no more than a comparison and a copy of known length.
class LogText {
 public:
  void append(std::string_view piece) {
    if (storage_.size() - size_ < piece.size()) {
      storage_.resize(std::max(2 * storage_.size(), size_ + piece.size()));
    }
    std::memcpy(storage_.data() + size_, piece.data(), piece.size());
    size_ += piece.size();
  }

  std::string_view view() const { return {storage_.data(), size_}; }
  std::size_t size() const { return size_; }
  void clear() { size_ = 0; }

 private:
  std::vector<char> storage_ = std::vector<char>(512);
  std::size_t size_ = 0;
};

}  // namespace zerolab
