// SPDX-License-Identifier: GPL-3.0-or-later
// Copyright: Contributors to the azure_imds.scheduled_events collection

// Return a line about each visible text of which the contrast is less than arguments[0], or arguments[1] if it is large.
const [least, leastOfLarge] = arguments;

function parts(colour) {
  const [red, green, blue, alpha = 1] = colour.match(/[\d.]+/g).map(Number);
  return [red, green, blue, alpha];
}

function over(front, back) {
  return [0, 1, 2].map((each) => front[each] * front[3] + back[each] * (1 - front[3])).concat(1);
}

function background(element) {
  const layers = [];
  for (let each = element; each; each = each.parentElement) {
    const colour = parts(getComputedStyle(each).backgroundColor);
    layers.unshift(colour);
    if (colour[3] === 1) break;
  }
  return layers.reduce((back, front) => over(front, back), [255, 255, 255, 1]);
}

function luminance(colour) {
  const [red, green, blue] = colour.slice(0, 3).map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(element) {
  const back = background(element);
  const front = over(parts(getComputedStyle(element).color), back);
  const [high, low] = [luminance(front), luminance(back)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

const found = new Map();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  const text = walker.currentNode.textContent.trim();
  if (!text || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
  // symbols that repeat what else is there, such as the link beside a heading
  if (element.closest("script, style, noscript, title, .headerlink, .visually-hidden, .skip-to-content")) continue;
  const style = getComputedStyle(element);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const ratio = contrast(element);
  if (ratio < (large ? leastOfLarge : least)) {
    const where = `${element.tagName.toLowerCase()}.${[...element.classList].join(".")} in ${element.parentElement.className}`;
    if (!found.has(where)) found.set(where, `${ratio.toFixed(2)}: ${where}: ${text.slice(0, 40)}`);
  }
}
return [...found.values()];
