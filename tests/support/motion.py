"""Scripts that move something in the page for sixty frames and give the milliseconds of each."""

from __future__ import annotations

#: The table of trials, by half a screen a frame.
SCROLL = """
const done = arguments[arguments.length - 1];
const list = document.querySelector('.virtual');
const times = [];
let before = 0;
let left = 60;
const step = (now) => {
  if (before) times.push(now - before);
  before = now;
  list.scrollTop += 937;
  left -= 1;
  if (left) requestAnimationFrame(step);
  else done(times);
};
requestAnimationFrame(step);
"""

#: The lineage, in and out by the wheel.
ZOOM = """
const done = arguments[arguments.length - 1];
const canvas = document.querySelector('.forest canvas');
const box = canvas.getBoundingClientRect();
const times = [];
let before = 0;
let left = 60;
const step = (now) => {
  if (before) times.push(now - before);
  before = now;
  canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: left > 30 ? -60 : 60, cancelable: true,
    clientX: box.left + box.width * 0.6, clientY: box.top + box.height * 0.4}));
  left -= 1;
  if (left) requestAnimationFrame(step);
  else done(times);
};
requestAnimationFrame(step);
"""
