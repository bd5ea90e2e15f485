#pragma once

#include <string>
#include <vector>

#include "lab/failures/clinic.hpp"
#include "lab/table.hpp"

namespace zerolab {

/// The table of all failures: id, stage, symptom, cause, fix, in so many columns of a terminal.
std::string list_text(const std::vector<Failure>& failures, Style style, std::size_t columns);

/// Everything about one: the broken run as a user meets it, the cause from the log, the fix, the
/// fixed run, and what was checked.
std::string examination_text(const Examination& examination, Style style, std::size_t columns);

/// One line about it, for many.
std::string examination_line(const Examination& examination, Style style);

}  // namespace zerolab
