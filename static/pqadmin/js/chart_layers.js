// @ts-check
// Paints what lies behind and before the lines of a chart: the fields of a heat map, shades and marks.

/** The upper ends of the classes of a heat map, as shares; the last class has none. Styles have their colors. */
const CLASSES = [0.01, 0.05, 0.2, 0.5];

/** Return what paints the fields of a heat map: a color for each class of a band's share. */
export function paintHeat(chart, colors, unknown) {
  return (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const pixel = devicePixelRatio;
    chart.times.slice(0, -1).forEach((at, n) => {
      const left = Math.round(u.valToPos(at, "x", true));
      const width = Math.round(u.valToPos(chart.times[n + 1], "x", true)) - left;
      const whole = chart.columns.reduce((sum, column) => sum + (column[n] ?? 0), 0);
      chart.columns.forEach((column, band) => {
        const top = Math.round(u.valToPos(band + 1, "y", true));
        const height = Math.round(u.valToPos(band, "y", true)) - top - pixel;
        const depth = column[n];
        const share = whole ? depth / whole : 0;
        const grade = depth ? 1 + CLASSES.filter((end) => share >= end).length : 0;
        ctx.fillStyle = depth === null ? unknown : colors[grade];
        ctx.fillRect(left, top, Math.max(pixel, width - (width > 4 * pixel ? pixel : 0)), height);
      });
    });
    ctx.restore();
  };
}

/** The newest stretch is not over, and what follows has not been: a shade says so. */
export function shadeUnfinished(u, data, color) {
  if (data.unfinished < data.end) shade(u, data.unfinished, data.end, color);
}

/** A shade for each time in which the queue was paused. */
export function shadePauses(u, data, color) {
  for (const [from, to] of data.pauses) shade(u, from, to ?? data.until, color);
}

function shade(u, from, to, color) {
  const { min, max } = u.scales.x;
  const left = u.valToPos(Math.max(from, min), "x", true);
  const right = u.valToPos(Math.min(to, max), "x", true);
  if (left >= right) return;
  u.ctx.fillStyle = color;
  u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
}

/** A dashed line with a wedge on top for each thing that a person did. */
export function drawMarks(u, data, color) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.setLineDash([3, 3]);
  for (const mark of data.marks) {
    if (mark.at < u.scales.x.min || mark.at > u.scales.x.max) continue;
    const x = u.valToPos(mark.at, "x", true);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x - 5, bbox.top);
    ctx.lineTo(x + 5, bbox.top);
    ctx.lineTo(x, bbox.top + 7);
    ctx.fill();
  }
  ctx.restore();
}
