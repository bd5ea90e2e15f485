// What the sanitizers are told when they start (presets asan-ubsan and tsan; linked only there).
// Compiled in rather than given by ctest, so that a test run by hand is judged the same way.

// The runtime libraries look for these very names.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

const char* __asan_default_options() {
  return "detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1";
}

const char* __ubsan_default_options() { return "print_stacktrace=1"; }

const char* __tsan_default_options() { return "halt_on_error=1:second_deadlock_stack=1"; }

// oneDNN makes its caches when they are first used, as function-local statics. It is not compiled
// with the sanitizer, which therefore sees one thread make them and others use them, but not the
// check of the static's guard in between. The same goes for a descriptor that comes out of its
// primitive cache, which locks, and is read by code of its header that is inlined into ours.
const char* __tsan_default_suppressions() {
  return "race:libdnnl.so\n"
         "race:dnnl::memory::desc::desc\n";
}
}
// NOLINTEND(readability-identifier-naming)
