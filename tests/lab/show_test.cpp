#include "lab/show.hpp"

#include <sstream>

#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

TEST_CASE("notes are shown as warnings, and nothing else is", "[lab]") {
  std::ostringstream out;
  Recorder recorder(0);
  show_notes(recorder, out);
  recorder.record(NoteEvent{"the order of modules has changed"});
  recorder.record(StepEvent{1, 2});
  CHECK(out.str() == "warning the order of modules has changed\n");
}

}  // namespace
}  // namespace zerolab
