#pragma once
// CmdStan's command line as one table: parsing and the settings in output files use `argument_table`.
#include <stdexcept>
#include <string>
#include <vector>

namespace frontend {

// The command line is invalid; the message names the argument and how to correct it.
struct UsageError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

enum class Kind {
  group,    // a word that opens its subarguments: `adapt`
  choice,   // name=alternative, where the alternative opens its own subarguments: `algorithm=hmc`
  word,     // an alternative without subarguments: `diag_e`
  refused,  // an alternative of CmdStan that this front end does not have; its value is the reason
  fixed,    // an argument of CmdStan that has only its default here
  integer,
  real,
  boolean,
  text
};

// A numeric range with open or closed ends, and its description for messages.
struct Range {
  double low, high;
  bool low_included, high_included;
  std::string in_words;
};

struct Argument {
  Kind kind;
  std::string name;
  std::string fallback;               // the default, as printed
  Range range;
  std::vector<Argument> children;     // subarguments of a group, alternatives of a choice
  std::string value;                  // as printed: the fallback unless the command line sets it
  bool given = false;

  bool is_default() const { return value == fallback; }
  const Argument& operator[](const std::string& child) const;
  Argument& operator[](const std::string& child);
  const Argument& chosen() const { return (*this)[value]; }
  bool chose(const std::string& alternative) const { return value == alternative; }

  long long as_integer() const;
  double as_real() const;
  bool as_boolean() const { return value == "true"; }
};

// Returns the whole tree with its defaults. `threads` is the default of num_threads.
Argument argument_table(int threads);

// Reads the words of a command line into the tree.
void parse(Argument& root, const std::vector<std::string>& words);

// Calls `line` with every `name = value (Default)` line, indented by depth.
template <typename Line>
void print(const Argument& argument, int depth, Line&& line) {
  const std::string indent(2 * depth, ' ');
  switch (argument.kind) {
    case Kind::word:
    case Kind::refused:
      return;
    case Kind::group:
      line(indent + argument.name);
      for (const Argument& child : argument.children)
        print(child, depth + 1, line);
      return;
    default:
      line(indent + argument.name + " = " + argument.value + (argument.is_default() ? " (Default)" : ""));
      if (argument.kind == Kind::choice)
        print(argument.chosen(), depth + 1, line);
  }
}

}  // namespace frontend
