#include "tests/support/gpt2_file.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <stdexcept>

#include "tests/support/documents.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {

bool gpt2_files_can_be_made() {
  if (std::system("python3 -c '' >/dev/null 2>&1") == 0) return true;
  std::cerr << "SKIPPED: there is no python3, so importing is NOT tested (apt-get install python3)"
            << std::endl;
  return false;
}

void make_gpt2_file(const std::filesystem::path& file, const std::string& flags) {
  const ModelDescription model = tiny_transformer();
  const std::string line = fmt::format(
      "python3 '{}' '{}' --layers {} --width {} --vocabulary {} --positions {} {}",
      (repository() / "tests/checkpoint/make_gpt2.py").string(), file.string(), model.num_layers,
      model.hidden_size, model.vocab_size, model.sequence_length, flags);
  if (std::system(line.c_str()) != 0) throw std::runtime_error("this failed: " + line);
}

}  // namespace zerolab::test
