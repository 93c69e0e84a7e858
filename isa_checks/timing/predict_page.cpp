// A prediction as a page to look at: where the time goes, a timeline of one CU, bandwidth over time, and the roofline.
#include "isa_checks/timing/predict.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace kiln::timing {
namespace {

constexpr int width = 1100;          // of every picture, pixels
constexpr std::size_t max_rows = 64; // waves of the timeline
constexpr std::array<const char*, doing_count> colours{"#3b6fb6", "#d9822b", "#f2c14e", "#8e6bbf", "#5aa469", "#d5d5d5", "#c0504d"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

// One wave's row: what it does most of the time, pixel by pixel, in rectangles.
std::string row_of(const std::vector<Span>& spans, double cycles, double y, double height) {
  std::vector<std::array<double, doing_count>> pixels(width);
  for (const Span& s : spans) {
    const double from = s.from / cycles * width, to = s.to / cycles * width;
    for (auto x = static_cast<std::size_t>(from); x < width && static_cast<double>(x) < to; ++x)
      pixels[x][static_cast<std::size_t>(s.doing)] += std::min(to, static_cast<double>(x) + 1) - std::max(from, static_cast<double>(x));
  }
  std::string svg;
  for (std::size_t x = 0; x < width;) {
    const auto most = [&](std::size_t at) { return std::ranges::max_element(pixels[at]) - pixels[at].begin(); };
    const auto doing = most(x);
    std::size_t end = x + 1;
    while (end < width && most(end) == doing) ++end;
    if (pixels[x][static_cast<std::size_t>(doing)] > 0)
      svg += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\" fill=\"{}\"/>", x, y, end - x, height,
                         colours[static_cast<std::size_t>(doing)]);
    x = end;
  }
  return svg;
}

std::string axis(double microseconds, double y) {
  std::string svg;
  const double step = std::pow(10.0, std::floor(std::log10(microseconds))) /
                      (microseconds / std::pow(10.0, std::floor(std::log10(microseconds))) < 3 ? 5 : 1);
  for (double t = 0; t <= microseconds; t += step)
    svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" font-size=\"11\" fill=\"#555\">{:g} us</text>", t / microseconds * width, y, t);
  return svg;
}

std::string timeline(const Prediction& p) {
  const Simulation& s = p.simulation;
  std::map<std::pair<std::uint32_t, int>, std::vector<Span>> waves;
  for (const Span& span : s.spans) waves[{span.workgroup, span.wave}].push_back(span);
  const std::size_t rows = std::min(waves.size(), max_rows);
  if (rows == 0) return {};
  const double height = rows > 32 ? 8 : 14;
  std::string svg = fmt::format("<svg width=\"{}\" height=\"{:.0f}\">", width + 90, static_cast<double>(rows) * height + 20);
  double y = 0;
  for (const auto& [wave, spans] : waves) {
    if (y >= static_cast<double>(rows) * height) break;
    svg += row_of(spans, s.cycles, y, height - 1);
    svg += fmt::format("<text x=\"{}\" y=\"{:.0f}\" font-size=\"{:.0f}\" fill=\"#555\">{}.{}</text>", width + 4, y + height - 2, height - 2,
                       wave.first, wave.second);
    y += height;
  }
  svg += axis(s.cycles / p.chip->clock_ghz / 1e3, y + 14) + "</svg><p>";
  for (std::size_t d = 0; d < doing_count; ++d)
    svg += fmt::format("<span style=\"background:{};padding:0 8px;margin-right:6px\"></span>{} &nbsp; ", colours[d],
                       to_string(static_cast<WaveActivity>(d)));
  return svg + fmt::format("</p><p>Rows are waves (workgroup.wave) of one CU{}; time begins with the first workgroup, the launch's {:.2f} "
                           "us are not shown.</p>",
                           waves.size() > rows ? fmt::format(", the first {} of {}", rows, waves.size()) : "", p.chip->floor_ns / 1e3);
}

std::string bandwidth(const Prediction& p) {
  const Simulation& s = p.simulation;
  const double scale = s.xcds / BusyTime::slice * p.chip->clock_ghz / 1e3; // bytes of a slice to TB/s of the chip
  double most = p.chip->peak_tbs;
  for (const double b : s.far_bytes) most = std::max(most, b * scale);
  std::string points;
  for (std::size_t i = 0; i < s.far_bytes.size(); ++i)
    points += fmt::format("{:.1f},{:.1f} ", static_cast<double>(i) * BusyTime::slice / s.cycles * width,
                          160 - 150 * s.far_bytes[i] * scale / most);
  const double peak = 160 - 150 * p.chip->peak_tbs / most;
  std::string rates; // the axis on the right
  for (const double share : {0.0, 0.5, 1.0}) {
    const double at = 160 - 150 * share;
    rates += fmt::format("<path d=\"M{0} {1:.0f} h4\" stroke=\"#555\"/><text x=\"{2}\" y=\"{3:.0f}\" font-size=\"11\" "
                         "fill=\"#555\">{4:.1f} TB/s</text>",
                         width, at, width + 6, at + 4, share * most);
  }
  return fmt::format("<svg width=\"{}\" height=\"180\"><polyline points=\"{}\" fill=\"none\" stroke=\"#3b6fb6\"/><line x1=\"0\" x2=\"{}\" "
                     "y1=\"{:.0f}\" y2=\"{:.0f}\" "
                     "stroke=\"#c0504d\" stroke-dasharray=\"4\"/><text x=\"4\" y=\"{:.0f}\" font-size=\"11\" fill=\"#c0504d\">peak of HBM, "
                     "{:g} TB/s</text>{}{}</svg>",
                     width + 90, points, width, peak, peak, peak + 12, p.chip->peak_tbs, rates,
                     axis(s.cycles / p.chip->clock_ghz / 1e3, 176));
}

std::string roofline(const Prediction& p) {
  if (p.flops == 0) return "<p>No matrix instructions: the roofline is the memory rate above.</p>";
  const double intensity = p.flops / p.bytes, reached = p.flops / p.microseconds / 1e6; // TFLOP/s
  const double roof = std::min(p.chip->peak_tflops_fp8, intensity * p.chip->peak_tbs);
  const auto x = [](double i) { return 40 + 300 * (std::log10(std::clamp(i, 0.1, 1e4)) + 1) / 5; };
  const auto y = [&](double t) { return 200 - 180 * (std::log10(std::clamp(t, 0.1, 1e4)) + 1) / 5; };
  const double ridge = p.chip->peak_tflops_fp8 / p.chip->peak_tbs;
  std::string axes = "<path d=\"M40 20 V200 H340\" stroke=\"#555\" fill=\"none\"/>";
  for (const double decade : {0.1, 1.0, 10.0, 100.0, 1e3, 1e4})
    axes += fmt::format("<text x=\"{0:.0f}\" y=\"214\" font-size=\"10\" text-anchor=\"middle\" fill=\"#555\">{2:g}</text>"
                        "<text x=\"36\" y=\"{1:.0f}\" font-size=\"10\" text-anchor=\"end\" fill=\"#555\">{2:g}</text>",
                        x(decade), y(decade) + 3, decade);
  axes += "<text x=\"190\" y=\"230\" font-size=\"11\" text-anchor=\"middle\" fill=\"#555\">operations a byte</text>"
          "<text x=\"44\" y=\"14\" font-size=\"11\" fill=\"#555\">TFLOP/s; the line: memory rate, then fp8 matrix rate</text>";
  return fmt::format(
      "<svg width=\"400\" height=\"236\">{}<polyline points=\"{:.0f},{:.0f} {:.0f},{:.0f} {:.0f},{:.0f}\" fill=\"none\" stroke=\"#555\"/>"
      "<circle cx=\"{:.0f}\" cy=\"{:.0f}\" r=\"4\" fill=\"#c0504d\"/></svg><p>{:.1f} operations a byte, {:.1f} TFLOP/s predicted of {:.0f} "
      "below the roof.</p>",
      axes, x(0.1), y(0.1 * p.chip->peak_tbs), x(ridge), y(p.chip->peak_tflops_fp8), x(1e4), y(p.chip->peak_tflops_fp8), x(intensity),
      y(reached), intensity, reached, roof);
}

} // namespace

std::string to_html(const Prediction& p) {
  const std::string title =
      fmt::format("{}: predicted on {}, caches {}, {} launch", escaped(p.kernel), p.chip->name, to_string(p.cache), to_string(p.launch));
  return fmt::format(
      "<!doctype html><meta charset=\"utf-8\"><title>{}</title><style>body{{font:14px sans-serif;margin:24px}}pre{{font:13px "
      "monospace}}</style>"
      "<h1>{}</h1><pre>{}</pre><h2>One CU, predicted</h2>{}<h2>Rate from MALL and HBM, predicted</h2>{}<h2>Roofline</h2>{}\n",
      title, title, escaped(to_text(p)), timeline(p), bandwidth(p), roofline(p));
}

} // namespace kiln::timing
