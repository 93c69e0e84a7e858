// The kinds of damage.
#include "tests/fuzz/mutate.h"
#include <algorithm>
#include <array>
#include <cstring>

namespace kiln::fuzz {
namespace {

// What sizes, offsets and counts are when they are wrong.
constexpr std::array<std::uint64_t, 14> numbers{
    0, 1, 2, 7, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// [begin, end) of the word at or after `at`.
std::pair<std::size_t, std::size_t> word_at(const std::string& line, std::size_t at) {
  constexpr std::string_view gaps = " \t,[]:()";
  const std::size_t begin = std::min(line.find_first_not_of(gaps, at), line.size());
  return {begin, std::min(line.find_first_of(gaps, begin), line.size())};
}

} // namespace

void Mutator::damage_once(std::vector<std::uint8_t>& bytes, std::size_t begin, std::size_t end) {
  const std::size_t at = begin + below(end - begin);
  const std::size_t room = end - at;
  switch (below(6)) {
  case 0: bytes[at] ^= static_cast<std::uint8_t>(1U << below(8)); break;
  case 1: bytes[at] = static_cast<std::uint8_t>(random_()); break;
  case 2: bytes[at] = static_cast<std::uint8_t>(bytes[at] + (below(2) == 0 ? 1 : 255)); break;
  case 3: {
    const std::uint64_t number = numbers[below(numbers.size())];
    std::memcpy(&bytes[at], &number, std::min<std::size_t>(room, std::size_t{1} << below(4)));
    break;
  }
  case 4: {
    const std::size_t size = std::min(room, 1 + below(16)), from = begin + below(end - begin - size + 1);
    std::memmove(&bytes[at], &bytes[from], size);
    break;
  }
  default:
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::min(room, 1 + below(32)),
                static_cast<std::uint8_t>(below(2) == 0 ? 0 : 0xff));
  }
}

void Mutator::damage(std::vector<std::uint8_t>& bytes, std::size_t begin, std::size_t end) {
  end = std::min(end, bytes.size());
  if (begin >= end) return;
  for (std::size_t changes = 1 + below(8); changes > 0; --changes) damage_once(bytes, begin, end);
}

void Mutator::reshape(std::vector<std::uint8_t>& bytes) {
  const auto place = [&](std::size_t at) { return bytes.begin() + static_cast<std::ptrdiff_t>(at); };
  const std::size_t at = below(bytes.size() + 1), size = std::min(bytes.size() - at, below(512));
  switch (below(4)) {
  case 0: bytes.resize(at); break;
  case 1: bytes.resize(bytes.size() + below(256), static_cast<std::uint8_t>(random_())); break;
  case 2: bytes.erase(place(at), place(at + size)); break;
  default: {
    const std::vector<std::uint8_t> part(place(at), place(at + size));
    bytes.insert(place(at), part.begin(), part.end());
  }
  }
  damage(bytes, 0, bytes.size());
}

std::string Mutator::garble(std::string_view text, std::span<const std::string_view> words) {
  std::vector<std::string> lines = lines_of(text);
  for (std::size_t changes = 1 + below(6); changes > 0 && !lines.empty(); --changes) {
    const std::size_t n = below(lines.size());
    std::string& line = lines[n];
    switch (below(6)) {
    case 0: lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(n)); break;
    case 1: lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(below(lines.size())), std::string(line)); break;
    case 2: std::swap(line, lines[below(lines.size())]); break;
    case 3: { // a word of another line
      const std::string& other = lines[below(lines.size())];
      const auto [begin, end] = word_at(line, below(line.size() + 1));
      const auto [from, to] = word_at(other, below(other.size() + 1));
      line = line.substr(0, begin) + other.substr(from, to - from) + line.substr(end);
      break;
    }
    case 4: { // a word that is often trouble
      const auto [begin, end] = word_at(line, below(line.size() + 1));
      line = line.substr(0, begin) + std::string(words.empty() ? "" : words[below(words.size())]) + line.substr(end);
      break;
    }
    default:
      if (!line.empty()) line[below(line.size())] = static_cast<char>(random_());
    }
  }
  std::string result;
  for (const std::string& line : lines) result += line + '\n';
  return result;
}

} // namespace kiln::fuzz
